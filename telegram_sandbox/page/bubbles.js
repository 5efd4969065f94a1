// One message as a bubble: who, the answered message, picture or file, text, time, buttons.

import { avatar, h, icon, tone } from './dom.js';
import { richText } from './text.js';
import { clock, fileSize, moment, words } from './words.js';

const ONLY_EMOJI = /^(?:\p{Extended_Pictographic}(?:\uFE0F|\p{Emoji_Modifier})?(?:\u200D\p{Extended_Pictographic}\uFE0F?)*){1,3}$/u;

export const nameOf = (person) => [person.first_name, person.last_name].filter(Boolean).join(' ');
export const fileAddress = (id) => `/sandbox/file/${encodeURIComponent(id)}`;

export function summary(message) {
  if (message.photo) return `🖼 ${message.caption || words.photo}`;
  if (message.document) return `📎 ${message.caption || message.document.file_name}`;
  return message.text || '';
}

export function authorOf(message) {
  if (message.from) return { id: message.from.id, name: nameOf(message.from) };
  return { id: message.chat.id, name: message.chat.title || '' };
}

// chat: the open one; actions: what a click may do.
export function bubble(stored, chat, me, actions) {
  const message = stored.message;
  const own = stored.user === me.id && chat.kind !== 'channel';
  const author = authorOf(message);
  const body = h('div', { class: 'bubble' });
  const named = !own && (chat.kind === 'supergroup' || chat.kind === 'group');
  if (named || chat.kind === 'channel') body.append(h('div', { class: `author text${tone(author.id)}` }, author.name));
  if (message.forward_origin) body.append(origin(message.forward_origin));
  if (message.reply_to_message) body.append(quoted(message.reply_to_message, actions));
  if (message.photo) body.append(picture(message, actions));
  if (message.document) body.append(document_(message.document));
  const text = message.text ?? message.caption ?? '';
  const entities = message.entities || message.caption_entities;
  const meta = h('span', { class: 'meta' },
    message.edit_date ? h('span', { class: 'edited', title: moment(message.edit_date) }, `${words.edited} `) : null,
    h('time', { datetime: new Date(message.date * 1000).toISOString(), title: moment(message.date) }, clock(message.date)),
    own ? icon('check') : null);
  const huge = !entities && ONLY_EMOJI.test(text);
  if (text) body.append(h('div', { class: huge ? 'text huge' : 'text', dir: 'auto' }, richText(text, entities, actions), meta));
  else body.append(meta);
  const keyboard = message.reply_markup?.inline_keyboard;
  const column = h('div', { class: 'column' }, body, keyboard ? buttons(keyboard, message, actions) : null);
  const element = h('article', {
    class: ['message', own ? 'own' : 'other', message.photo ? 'with-photo' : '', text ? '' : 'without-text', huge ? 'alone' : '']
      .filter(Boolean).join(' '),
    data: { id: message.message_id, author: author.id, date: message.date },
    oncontextmenu: (event) => {
      if (event.target.closest('a')) return;
      event.preventDefault();
      actions.menu(stored, event.clientX, event.clientY);
    },
    ondblclick: (event) => { if (!event.target.closest('button, a, code')) actions.reply(stored); },
  }, named ? avatar(author.id, author.name, 'small') : null, column);
  return element;
}

function origin(from) {
  const name = from.type === 'channel' ? from.chat.title : from.sender_user ? nameOf(from.sender_user) : from.sender_user_name || '';
  return h('div', { class: 'forwarded' }, `${words.forwarded} `, h('b', {}, name));
}

function quoted(message, actions) {
  const author = authorOf(message);
  return h('button', { type: 'button', class: `quoted edge${tone(author.id)}`, onclick: () => actions.jump(message.message_id) },
    h('b', {}, author.name), h('span', {}, summary(message)));
}

function picture(message, actions) {
  const photo = message.photo.at(-1);
  const address = fileAddress(photo.file_id);
  // The page must not jump when the picture arrives: its size is known.
  const image = h('img', {
    src: address, alt: message.caption || words.photo, width: String(photo.width), height: String(photo.height), loading: 'lazy',
  });
  const frame = h('button', { type: 'button', class: 'photo', onclick: () => actions.view(address, message.caption) }, image);
  frame.style.aspectRatio = `${photo.width} / ${photo.height}`;
  return frame;
}

function document_(file) {
  const suffix = file.file_name.includes('.') ? file.file_name.split('.').pop().slice(0, 4) : '';
  return h('a', { class: 'document', href: fileAddress(file.file_id), download: file.file_name },
    h('span', { class: 'badge' }, suffix ? suffix.toUpperCase() : icon('file')),
    h('span', { class: 'facts' }, h('b', {}, file.file_name), h('span', {}, fileSize(file.file_size))));
}

function buttons(rows, message, actions) {
  return h('div', { class: 'buttons' }, rows.map((row) => h('div', { class: 'row' }, row.map((button) => {
    const element = h('button', { type: 'button', class: 'button' }, h('span', {}, button.text), button.url ? icon('out') : null);
    element.addEventListener('click', () => actions.press(message, button, element));
    return element;
  }))));
}
