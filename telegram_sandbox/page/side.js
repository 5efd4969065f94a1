// The left column: who we act as, and the chats of that person.

import { avatar, h, icon } from './dom.js';
import { nameOf, summary } from './bubbles.js';
import { shortMoment, words } from './words.js';

export function people(users, me, choose) {
  const known = users.filter((user) => ['admin', 'editor', 'user1', 'user2'].includes(user.key) || user.id === me.id);
  document.getElementById('people').setAttribute('aria-label', words.actAs);
  document.getElementById('people').replaceChildren(...known.map((user) => h('button', {
    type: 'button',
    class: user.id === me.id ? 'person chosen' : 'person',
    title: `${words.actAs} ${nameOf(user)} (${user.key}, id ${user.id})`,
    'aria-pressed': user.id === me.id ? 'true' : 'false',
    data: { key: user.key },
    onclick: () => choose(user.key),
  }, avatar(user.id, nameOf(user)), h('span', {}, user.first_name), h('small', {}, user.key))));
}

const KINDS = { channel: 'megaphone', supergroup: 'group', group: 'group', private: 'bot' };

export function chats(list, open, unread, actions, choose) {
  document.getElementById('chats').replaceChildren(...list.map((chat) => {
    const count = unread.get(chat.place) || 0;
    const action = actions.get(chat.place);
    const last = chat.last?.message;
    return h('button', {
      type: 'button',
      role: 'listitem',
      class: chat.place === open ? 'entry chosen' : 'entry',
      data: { place: chat.place },
      onclick: () => choose(chat.place),
    },
    avatar(chat.bot?.id ?? chat.chat, chat.title),
    h('span', { class: 'about' },
      h('span', { class: 'line' }, icon(KINDS[chat.kind]), h('b', {}, chat.title), last ? h('time', {}, shortMoment(last.date)) : null),
      h('span', { class: 'line' },
        h('span', { class: action ? 'last action' : 'last' }, action ? `${action}…` : last ? lastWords(chat, last) : words.empty),
        count ? h('span', { class: 'unread' }, String(count)) : null)));
  }));
}

function lastWords(chat, message) {
  const who = chat.kind === 'supergroup' || chat.kind === 'group' ? message.from && `${message.from.first_name}: ` : '';
  return `${who || ''}${summary(message)}`.slice(0, 120);
}
