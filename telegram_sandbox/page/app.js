// The page: who we are, which chat is open, what changes. Everything shown is in `state`.

import { get, listen, post, upload } from './api.js';
import { bubble } from './bubbles.js';
import * as composer from './composer.js';
import { alertBox, chooseChat, menu, toast, viewer } from './dialogs.js';
import { avatar, fill, h, icon } from './dom.js';
import * as side from './side.js';
import { insideLink } from './text.js';
import { dayKey, dayName, memberCount, words } from './words.js';

const app = document.getElementById('app');
const box = document.getElementById('messages');
const scroll = document.getElementById('scroll');
const head = document.getElementById('head');
const down = document.getElementById('down');

const state = {
  me: null, users: [], chats: [], open: null, messages: new Map(), keyboard: null,
  unread: new Map(), actions: new Map(), pending: new Map(), connected: true, more: false, byHand: false,
};
// Seconds that a pressed button waits for its answer, and that "typing" is believed.
const PATIENCE = 15;
const ACTION = 5;

const chatOf = (place) => state.chats.find((chat) => chat.place === place);
const current = () => chatOf(state.open);
const where = (chat) => ({ as: state.me.key, chat: chat.kind === 'private' ? undefined : chat.chat, bot: chat.bot?.id });
const narrow = () => matchMedia('(max-width: 720px)').matches;

async function attempt(deed) {
  try {
    return await deed();
  } catch (error) {
    toast(error.message);
    return null;
  }
}

// -- who we are, and what we see

async function become(key) {
  sessionStorage.setItem('as', key);
  state.unread.clear();
  state.byHand = false;
  await look(key);
}

async function look(key = state.me?.key) {
  const fresh = await attempt(() => get('state', { as: key }));
  if (!fresh) return null;
  const other = state.me?.key !== fresh.me.key;
  Object.assign(state, { me: fresh.me, users: fresh.users, chats: fresh.chats });
  for (const event of recent) if (event.seq > fresh.seq && event.stored) lastOf(chatOf(event.place), event.stored);
  if (other) address();
  side.people(state.users, state.me, become);
  if (other && state.open?.includes(':')) {
    // The private chat with the same bot, as somebody else.
    const bot = state.open.split(':')[0];
    state.open = `${bot}:${state.me.id}`;
  }
  if (state.open && !current()) state.open = null;
  if (!narrow() && (!state.open || !(state.byHand || state.open.includes(':')))) state.open = newest()?.place ?? null;
  drawSide();
  if (state.open) await show(state.open);
  else drawNothing();
  return fresh;
}

const date = (chat) => chat.last?.message.date || 0;
const sorted = () => [...state.chats].sort((a, b) => date(b) - date(a) || (b.kind === 'private') - (a.kind === 'private'));
const newest = () => sorted().find((chat) => chat.kind === 'private');

function drawSide() {
  const actions = new Map([...state.actions].map(([place, action]) => [place, action.words]));
  side.chats(sorted(), state.open, state.unread, actions, (place) => show(place, true));
  const note = document.getElementById('note');
  note.replaceChildren(state.chats.some((chat) => chat.bot) ? words.sandbox : h('span', {}, words.noBots, ' ', h('code', {}, location.origin)));
}

function drawNothing() {
  app.classList.remove('in-chat');
  head.replaceChildren();
  composer.clear();
  down.hidden = true;
  fill(box, h('p', { class: 'hint' }, state.chats.some((chat) => chat.bot) ? words.chooseChat : words.noBots,
    state.chats.some((chat) => chat.bot) ? null : h('code', {}, location.origin)));
}

async function show(place, chosen = false) {
  const changed = state.open !== place;
  state.open = place;
  state.unread.delete(place);
  const chat = current();
  if (chosen) { app.classList.add('in-chat'); state.byHand = true; }
  const found = await attempt(() => get('messages', where(chat)));
  if (!found || state.open !== place) return;
  state.messages = new Map(found.messages.map((stored) => [stored.message.message_id, stored]));
  state.keyboard = found.keyboard;
  state.more = found.more;
  // What changed while the answer was on its way.
  for (const event of recent) if (event.place === place && event.seq > found.seq) keep(event);
  const atEnd = changed || chosen || isAtEnd();
  drawHead();
  drawMessages();
  drawComposer();
  drawSide();
  if (atEnd) toEnd();
  if (chosen) { composer.focus(); address(); }
}

function address() {
  history.replaceState(null, '', `/?as=${encodeURIComponent(state.me.key)}`);
}

// -- the head

function drawHead() {
  const chat = current();
  if (!chat) return;
  const action = state.actions.get(chat.place);
  let about = chat.kind === 'private'
    ? (chat.bot.heard ? words.bot : words.silent)
    : memberCount(chat.members, chat.kind === 'channel');
  if (action) about = `${action.words}…`;
  if (!state.connected) about = words.connecting;
  fill(head,
    h('button', { type: 'button', class: 'plain back', title: words.back, 'aria-label': words.back, onclick: leave }, icon('back')),
    avatar(chat.bot?.id ?? chat.chat, chat.title),
    h('div', { class: 'title' }, h('h1', {}, chat.title), h('p', { class: action ? 'action' : '' }, about)),
    chat.kind === 'private' && chat.started && !chat.blocked ? h('button', {
      type: 'button', class: 'plain', title: words.more, 'aria-label': words.more,
      onclick: (event) => menu([{ icon: 'close', text: words.block, deed: () => membership('block', chat) }], event.clientX, event.clientY + 12),
    }, icon('more')) : null);
  document.title = `${chat.title} · ${words.title}`;
}

function leave() {
  app.classList.remove('in-chat');
  state.open = null;
  drawNothing();
  drawSide();
}

const membership = (deed, chat) => attempt(async () => { await post(deed, where(chat)); await look(); });

// -- messages

function drawMessages() {
  const chat = current();
  const all = [...state.messages.values()].sort((a, b) => a.message.message_id - b.message.message_id);
  const elements = [];
  if (state.more) elements.push(h('button', { type: 'button', class: 'older', onclick: older }, '↑'));
  let day = '';
  for (const stored of all) {
    const key = dayKey(stored.message.date);
    if (key !== day) elements.push(h('div', { class: 'day' }, dayName(stored.message.date)));
    day = key;
    elements.push(bubble(stored, chat, state.me, actions));
  }
  if (!all.length) elements.push(welcome(chat));
  box.className = `messages ${chat.kind}`;
  box.replaceChildren(...elements);
  join();
}

function welcome(chat) {
  const words_ = chat.bot?.description || chat.bot?.short_description;
  return h('div', { class: 'welcome' }, avatar(chat.bot?.id ?? chat.chat, chat.title, 'large'), h('h2', {}, chat.title),
    words_ ? [h('b', {}, words.what), h('p', {}, words_)] : h('p', {}, words.empty));
}

async function older() {
  const first = Math.min(...state.messages.keys());
  const found = await attempt(() => get('messages', { ...where(current()), before: first }));
  if (!found) return;
  const height = scroll.scrollHeight;
  for (const stored of found.messages) state.messages.set(stored.message.message_id, stored);
  state.more = found.more;
  drawMessages();
  scroll.scrollTop += scroll.scrollHeight - height;
}

// Bubbles of one author in a row belong together: only the last has a tail.
function join() {
  let before = null;
  for (const element of box.children) {
    const same = before?.dataset.author && before.dataset.author === element.dataset.author
      && before.className.includes('own') === element.className.includes('own')
      && Number(element.dataset.date) - Number(before.dataset.date) < 600;
    element.classList.toggle('follows', Boolean(same));
    before?.classList.toggle('followed', Boolean(same));
    before = element;
  }
}

function upsert(event) {
  const { stored } = event;
  const id = stored.message.message_id;
  const known = state.messages.has(id);
  const atEnd = isAtEnd();
  keep(event);
  const old = known && box.querySelector(`[data-id="${id}"]`);
  if (old) {
    const fresh = bubble(stored, current(), state.me, actions);
    fresh.classList.add('changed');
    old.replaceWith(fresh);
    join();
  } else {
    const own = stored.user === state.me.id;
    drawMessages();
    box.lastElementChild?.classList.add('new');
    if (atEnd || own) toEnd();
    else down.hidden = false;
    return;
  }
  if (atEnd) toEnd();
}

const isAtEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
const toEnd = () => { scroll.scrollTop = scroll.scrollHeight; down.hidden = true; };
scroll.addEventListener('scroll', () => { down.hidden = isAtEnd(); });
down.append(icon('down'));
down.title = words.down;
down.setAttribute('aria-label', words.down);
down.addEventListener('click', toEnd);
new ResizeObserver(() => { if (down.hidden) toEnd(); }).observe(scroll);

function drawComposer() {
  const chat = current();
  composer.compose(chat, state.me, state.keyboard, {
    say: (text, reply) => attempt(() => post('say', { ...where(chat), text, reply_to: reply })),
    upload: (file, caption, kind, reply) => attempt(() => upload({ ...where(chat), caption, kind, reply_to: reply }, file)),
    start: () => attempt(async () => { await post('start', { as: state.me.key, bot: chat.bot.id }); await look(); }),
    unblock: () => membership('unblock', chat),
    join: () => membership('join', chat),
  });
}

// -- what a click in a message may do

const actions = {
  say: (text) => attempt(() => post('say', { ...where(current()), text })),
  reply: (stored) => composer.replyTo(stored),
  view: viewer,
  copy: (text) => navigator.clipboard?.writeText(text).then(() => toast(words.copied), () => {}),
  jump(id) {
    const element = box.querySelector(`[data-id="${id}"]`);
    if (!element) return;
    element.scrollIntoView({ block: 'center', behavior: 'smooth' });
    element.classList.add('found');
    setTimeout(() => element.classList.remove('found'), 1500);
  },
  mention(name) { actions.visit({ name, code: '' }); },
  followed(address_) {
    const inside = insideLink(address_);
    return inside ? actions.visit(inside) : false;
  },
  visit({ name, code, message }) {
    const wanted = name.toLowerCase();
    const chat = state.chats.find((c) => c.bot?.username.toLowerCase() === wanted || c.username?.toLowerCase() === wanted);
    if (!chat) return false;
    if (code && chat.bot) attempt(async () => { await post('start', { as: state.me.key, bot: chat.bot.id, code }); await look(); });
    show(chat.place, true).then(() => message && actions.jump(message));
    return true;
  },
  menu(stored, x, y) {
    const text = stored.message.text ?? stored.message.caption;
    const chat = current();
    menu([
      chat.can_write ? { icon: 'reply', text: words.reply, deed: () => composer.replyTo(stored) } : null,
      { icon: 'forward', text: words.forward, deed: () => forward(chat, stored) },
      text ? { icon: 'copy', text: words.copy, deed: () => actions.copy(text) } : null,
    ].filter(Boolean), x, y);
  },
  async press(message, button, element) {
    if (button.url) {
      if (!actions.followed(button.url) && /^(https?|tg):/i.test(button.url)) open(button.url, '_blank', 'noopener,noreferrer');
      return;
    }
    element.classList.add('waiting');
    const done = () => element.classList.remove('waiting');
    const pressed = await attempt(() => post('press', {
      ...where(current()), button: button.callback_data ?? button.text, message_id: message.message_id,
    }));
    if (!pressed?.query) { done(); return; }
    if (state.pending.get(pressed.query) === 'answered') { state.pending.delete(pressed.query); done(); return; }
    state.pending.set(pressed.query, done);
    setTimeout(() => { state.pending.delete(pressed.query); done(); }, PATIENCE * 1000);
  },
};

function forward(chat, stored) {
  chooseChat(sorted().filter((c) => c.can_write && !c.blocked), async (target) => {
    await attempt(() => post('forward', {
      ...where(chat), message_id: stored.message.message_id,
      to: target.kind === 'private' ? undefined : target.chat, to_bot: target.bot?.id,
    }));
    await look();
    show(target.place, true);
  });
}

function answered(event) {
  if (event.user !== state.me.id) return;
  const done = state.pending.get(event.query);
  // The answer may be here before the press has returned.
  if (typeof done === 'function') { done(); state.pending.delete(event.query); } else state.pending.set(event.query, 'answered');
  if (event.url && !actions.followed(event.url) && /^(https?|tg):/i.test(event.url)) open(event.url, '_blank', 'noopener,noreferrer');
  if (event.text) (event.alert ? alertBox : toast)(event.text);
}

// -- what changes

const ACTIONS = { typing: words.typing, upload_photo: words.sendsPhoto, upload_document: words.sendsFile };

function acts(event) {
  clearTimeout(state.actions.get(event.place)?.ends);
  const ends = setTimeout(() => { state.actions.delete(event.place); drawHead(); drawSide(); }, ACTION * 1000);
  state.actions.set(event.place, { words: ACTIONS[event.action] || words.typing, ends });
  if (event.place === state.open) drawHead();
  drawSide();
}

function ofOurs(place) {
  return !place.includes(':') || place.endsWith(`:${state.me.id}`);
}

const recent = [];

function lastOf(chat, stored) {
  if (chat && (!chat.last || chat.last.message.message_id <= stored.message.message_id)) chat.last = stored;
}

function keep(event) {
  if (event.kind === 'delete') state.messages.delete(event.message_id);
  if (!event.stored) return;
  state.messages.set(event.stored.message.message_id, event.stored);
  if (event.kind === 'message' && event.stored.keyboard) {
    state.keyboard = event.stored.keyboard.remove_keyboard ? null : event.stored.keyboard;
  }
}

function change(event) {
  recent.push(event);
  if (recent.length > 300) recent.shift();
  if (event.kind === 'bot' || event.kind === 'chat') { refresh(); return; }
  if (event.kind === 'answer') { answered(event); return; }
  if (!event.place || !ofOurs(event.place)) return;
  const chat = chatOf(event.place);
  if (!chat) { refresh(); return; }
  if (event.kind === 'action') { acts(event); return; }
  if (event.kind === 'delete') {
    if (event.place === state.open) { keep(event); drawMessages(); }
    if (chat.last?.message.message_id === event.message_id) refresh();
    return;
  }
  if (event.kind === 'message') {
    if (event.stored.bot) { clearTimeout(state.actions.get(event.place)?.ends); state.actions.delete(event.place); }
    if (event.place !== state.open && event.stored.user !== state.me.id) {
      state.unread.set(event.place, (state.unread.get(event.place) || 0) + 1);
    }
  }
  lastOf(chat, event.stored);
  if (chat.kind === 'private' && !chat.started) refresh();
  if (event.place === state.open) {
    upsert(event);
    drawHead();
    drawComposer();
  }
  drawSide();
}

let soon;
function refresh() {
  clearTimeout(soon);
  soon = setTimeout(async () => { await look(); await deepLink(); }, 30);
}

// -- the start: /?as=admin&start=CODE sends /start CODE, once, as soon as there is a bot to send it to

const query = new URLSearchParams(location.search);
let code = query.get('start');

async function deepLink() {
  if (code === null) return;
  const chat = state.chats.find((c) => c.bot && (!query.get('bot') || String(c.bot.id) === query.get('bot'))) ;
  if (!chat) return;
  const once = code;
  code = null;
  await attempt(() => post('start', { as: state.me.key, bot: query.get('bot') || undefined, code: once }));
  await look();
  await show(newest()?.place, true);
}

async function begin() {
  const wanted = query.get('as') || sessionStorage.getItem('as') || 'admin';
  let fresh = await look(wanted);
  if (!fresh) fresh = await look('admin');
  sessionStorage.setItem('as', state.me.key);
  address();
  if (query.get('chat')) {
    const chat = state.chats.find((c) => [String(c.chat), c.username, c.place].includes(query.get('chat').replace('@', '')) && c.kind !== 'private');
    if (chat) await show(chat.place, true);
  }
  listen(fresh.seq, change, () => look(), (connected) => {
    if (state.connected === connected) return;
    state.connected = connected;
    app.classList.toggle('offline', !connected);
    drawHead();
  });
  await deepLink();
}

for (const name of ['dragover', 'drop']) {
  scroll.addEventListener(name, (event) => {
    event.preventDefault();
    if (name === 'drop' && event.dataTransfer.files[0]) composer.take(event.dataTransfer.files[0]);
  });
}
addEventListener('keydown', (event) => { if (event.key === 'Escape') document.querySelector('.popup')?.remove(); });

begin();
