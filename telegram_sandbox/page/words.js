// Every word of the page, in Russian and English, by the browser's language.

const russian = (navigator.languages?.[0] || navigator.language || 'en').toLowerCase().startsWith('ru');
export const language = russian ? 'ru' : 'en';
document.documentElement.lang = language;

const RU = {
  title: 'Telegram-песочница',
  write: 'Сообщение',
  send: 'Отправить',
  attach: 'Прикрепить файл',
  menu: 'Меню',
  commands: 'Команды бота',
  start: 'Начать',
  unblock: 'Разблокировать',
  block: 'Заблокировать бота',
  join: 'Вступить',
  readOnly: 'В канал пишут только администраторы',
  edited: 'изменено',
  today: 'Сегодня',
  yesterday: 'Вчера',
  forwarded: 'Переслано от',
  reply: 'Ответить',
  forward: 'Переслать',
  copy: 'Копировать текст',
  copied: 'Скопировано',
  cancel: 'Отмена',
  caption: 'Подпись',
  asPhoto: 'Отправить как фото',
  close: 'Закрыть',
  back: 'Назад',
  bot: 'бот',
  silent: 'бот ещё не подключился после запуска песочницы',
  typing: 'печатает',
  sendsPhoto: 'отправляет фото',
  sendsFile: 'отправляет файл',
  connecting: 'Соединение…',
  photo: 'Фото',
  you: 'Вы',
  empty: 'Здесь пока пусто',
  chooseChat: 'Выберите чат',
  noBots: 'Пока ни один бот не подключился. Направьте бота сюда — подойдёт любой токен вида 1000000001:AAA… (35 знаков):',
  forwardTo: 'Кому переслать?',
  down: 'Вниз',
  more: 'Ещё',
  keyboard: 'Клавиатура',
  openLink: 'Открыть ссылку',
  sandbox: 'Песочница: ничего не уходит с этого компьютера',
  actAs: 'Действовать как',
  what: 'Что умеет этот бот?',
  failed: 'Не получилось',
  dropHere: 'Отпустите файл, чтобы отправить',
  channel: 'канал',
  group: 'группа',
  roles: { admin: 'Админ', editor: 'Редактор', user1: 'Ульяна', user2: 'Oliver' },
};

const EN = {
  title: 'Telegram sandbox',
  write: 'Message',
  send: 'Send',
  attach: 'Attach a file',
  menu: 'Menu',
  commands: 'Commands of the bot',
  start: 'Start',
  unblock: 'Unblock',
  block: 'Block the bot',
  join: 'Join',
  readOnly: 'Only admins write in this channel',
  edited: 'edited',
  today: 'Today',
  yesterday: 'Yesterday',
  forwarded: 'Forwarded from',
  reply: 'Reply',
  forward: 'Forward',
  copy: 'Copy text',
  copied: 'Copied',
  cancel: 'Cancel',
  caption: 'Caption',
  asPhoto: 'Send as a photo',
  close: 'Close',
  back: 'Back',
  bot: 'bot',
  silent: 'the bot has not called since the sandbox started',
  typing: 'typing',
  sendsPhoto: 'sending a photo',
  sendsFile: 'sending a file',
  connecting: 'Connecting…',
  photo: 'Photo',
  you: 'You',
  empty: 'Nothing here yet',
  chooseChat: 'Choose a chat',
  noBots: 'No bot has connected yet. Point one here; any token like 1000000001:AAA… (35 characters) will do:',
  forwardTo: 'Forward to',
  down: 'Down',
  more: 'More',
  keyboard: 'Keyboard',
  openLink: 'Open the link',
  sandbox: 'A sandbox: nothing leaves this computer',
  actAs: 'Act as',
  what: 'What can this bot do?',
  failed: 'That did not work',
  dropHere: 'Drop the file to send it',
  channel: 'channel',
  group: 'group',
  roles: { admin: 'Admin', editor: 'Editor', user1: 'Ulyana', user2: 'Oliver' },
};

export const words = russian ? RU : EN;

const members = new Intl.PluralRules(language);
const MEMBERS = {
  ru: { one: 'участник', few: 'участника', many: 'участников', other: 'участников' },
  en: { one: 'member', other: 'members' },
};
const SUBSCRIBERS = {
  ru: { one: 'подписчик', few: 'подписчика', many: 'подписчиков', other: 'подписчиков' },
  en: { one: 'subscriber', other: 'subscribers' },
};

export function memberCount(count, channel) {
  return `${count} ${(channel ? SUBSCRIBERS : MEMBERS)[language][members.select(count)]}`;
}

const time = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(language, { day: 'numeric', month: 'long' });
const dayAndYear = new Intl.DateTimeFormat(language, { day: 'numeric', month: 'long', year: 'numeric' });
const short = new Intl.DateTimeFormat(language, { day: '2-digit', month: '2-digit' });

export const clock = (seconds) => time.format(seconds * 1000);
export const moment = (seconds) => new Date(seconds * 1000).toLocaleString(language);
export const dayKey = (seconds) => new Date(seconds * 1000).toDateString();

export function dayName(seconds) {
  const at = new Date(seconds * 1000);
  const now = new Date();
  if (at.toDateString() === now.toDateString()) return words.today;
  const yesterday = new Date(now);
  yesterday.setDate(now.getDate() - 1);
  if (at.toDateString() === yesterday.toDateString()) return words.yesterday;
  return (at.getFullYear() === now.getFullYear() ? day : dayAndYear).format(at);
}

export function shortMoment(seconds) {
  return dayKey(seconds) === new Date().toDateString() ? clock(seconds) : short.format(seconds * 1000);
}

export function fileSize(bytes) {
  const units = language === 'ru' ? ['Б', 'КБ', 'МБ'] : ['B', 'KB', 'MB'];
  const step = bytes < 1024 ? 0 : bytes < 1024 * 1024 ? 1 : 2;
  const value = bytes / 1024 ** step;
  return `${value.toLocaleString(language, { maximumFractionDigits: step ? 1 : 0 })} ${units[step]}`;
}
