// The bottom: where people write, the commands menu, reply keyboards, files; or why nobody may write here.

import { h, icon } from './dom.js';
import { sendFile, toast } from './dialogs.js';
import { authorOf, summary } from './bubbles.js';
import { words } from './words.js';

const place = document.getElementById('composer');
const drafts = new Map();
let current = null;

// deeds: say(text, replyTo), upload(file, caption, kind, replyTo), start(), unblock(), join()
export function compose(chat, me, keyboard, deeds) {
  const key = `${me.id} ${chat.place} ${chat.started} ${chat.blocked} ${chat.can_write} ${chat.status}`;
  if (current?.key === key) {
    current.refresh(chat, keyboard);
    return;
  }
  current = null;
  if (chat.blocked) place.replaceChildren(big(words.unblock, deeds.unblock));
  else if (chat.kind === 'private' && !chat.started) place.replaceChildren(big(words.start, deeds.start));
  else if (!chat.can_write && chat.kind === 'channel') place.replaceChildren(h('div', { class: 'bar' }, words.readOnly));
  else if (!chat.can_write) place.replaceChildren(big(words.join, deeds.join));
  else current = writer(key, chat, keyboard, deeds);
}

export function clear() {
  current = null;
  place.replaceChildren();
}

export const replyTo = (stored) => current?.replyTo(stored);
export const take = (file) => current?.take(file);
export const focus = () => { if (matchMedia('(hover: hover)').matches) current?.input.focus(); };

const big = (text, deed) => h('button', { type: 'button', class: 'bar big', onclick: deed }, text);

function writer(key, chat, keyboard, deeds) {
  let answered = null;
  let commands = chat.commands;
  let chosen = 0;
  let hidden = false;
  let shownKeyboard = null;

  const input = h('textarea', { rows: '1', placeholder: words.write, 'aria-label': words.write, maxlength: '4096', enterkeyhint: 'send' });
  const send = h('button', { type: 'button', class: 'round send', title: words.send, 'aria-label': words.send }, icon('send'));
  const chooser = h('input', { type: 'file', hidden: true, 'aria-label': words.attach });
  const attach = h('button', { type: 'button', class: 'plain', title: words.attach, 'aria-label': words.attach, onclick: () => chooser.click() }, icon('clip'));
  const menuButton = h('button', { type: 'button', class: 'menu-button', 'aria-label': words.commands }, icon('menu'), h('span', {}, words.menu));
  const keysButton = h('button', { type: 'button', class: 'plain', title: words.keyboard, 'aria-label': words.keyboard }, icon('keyboard'));
  const list = h('div', { class: 'commands', role: 'listbox', hidden: true });
  const reply = h('div', { class: 'answered', hidden: true });
  const keys = h('div', { class: 'keys', hidden: true });
  const line = h('div', { class: 'line' }, h('div', { class: 'field' }, menuButton, input, keysButton, attach), send);
  place.replaceChildren(list, reply, line, keys, chooser);

  const grow = () => {
    input.style.height = 'auto';
    input.style.height = `${Math.min(input.scrollHeight, 160)}px`;
  };
  const matching = () => {
    const typed = /^\/(\w*)$/.exec(input.value);
    return typed ? commands.filter((command) => command.command.startsWith(typed[1].toLowerCase())) : [];
  };
  const offer = (found) => {
    list.hidden = found.length === 0;
    chosen = Math.min(chosen, Math.max(0, found.length - 1));
    list.replaceChildren(...found.map((command, index) => h('button', {
      type: 'button', role: 'option', class: index === chosen ? 'chosen' : '', 'aria-selected': String(index === chosen),
      onclick: () => pick(command),
    }, h('b', {}, `/${command.command}`), h('span', {}, command.description))));
  };
  const pick = (command) => {
    list.hidden = true;
    say(`/${command.command}${command.bot ? `@${command.bot}` : ''}`);
  };
  const say = (text) => {
    if (!text.trim()) return;
    if (text.length > 4096) { toast(words.failed); return; }
    deeds.say(text, answered?.message.message_id);
    input.value = '';
    drafts.delete(key);
    replyTo_(null);
    offer([]);
    grow();
    if (shownKeyboard?.one_time_keyboard) { hidden = true; drawKeys(); }
  };
  const replyTo_ = (stored) => {
    answered = stored;
    reply.hidden = !stored;
    if (!stored) return;
    reply.replaceChildren(icon('reply'),
      h('div', {}, h('b', {}, authorOf(stored.message).name), h('span', {}, summary(stored.message))),
      h('button', { type: 'button', class: 'plain', title: words.cancel, onclick: () => replyTo_(null) }, icon('close')));
    input.focus();
  };
  const drawKeys = () => {
    const rows = shownKeyboard?.keyboard;
    keysButton.hidden = !rows;
    keys.hidden = !rows || hidden;
    if (!rows) return;
    keys.replaceChildren(...rows.map((row) => h('div', { class: 'row' }, row.map((button) => h('button', {
      type: 'button', class: 'key', onclick: () => say(button.text),
    }, button.text)))));
  };
  const take = (file) => sendFile(file, (caption, kind) => {
    deeds.upload(file, caption, kind, answered?.message.message_id);
    replyTo_(null);
  });
  const refresh = (fresh, freshKeyboard) => {
    commands = fresh.commands || [];
    menuButton.hidden = !commands.length;
    if (freshKeyboard !== shownKeyboard) {
      shownKeyboard = freshKeyboard;
      hidden = false;
      input.placeholder = freshKeyboard?.input_field_placeholder || words.write;
      drawKeys();
    }
    if (!list.hidden) offer(matching());
  };

  input.value = drafts.get(key) || '';
  input.addEventListener('input', () => {
    drafts.set(key, input.value);
    chosen = 0;
    offer(matching());
    grow();
  });
  input.addEventListener('keydown', (event) => {
    const found = list.hidden ? [] : matching();
    if (found.length && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
      event.preventDefault();
      chosen = (chosen + (event.key === 'ArrowDown' ? 1 : found.length - 1)) % found.length;
      offer(found);
    } else if (event.key === 'Escape') {
      offer([]);
      replyTo_(null);
    } else if (event.key === 'Tab' && found.length) {
      event.preventDefault();
      input.value = `/${found[chosen].command} `;
      offer([]);
    } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (found.length) pick(found[chosen]);
      else say(input.value);
    }
  });
  input.addEventListener('paste', (event) => {
    const file = event.clipboardData?.files?.[0];
    if (file) { event.preventDefault(); take(file); }
  });
  chooser.addEventListener('change', () => {
    if (chooser.files[0]) take(chooser.files[0]);
    chooser.value = '';
  });
  send.addEventListener('click', () => { say(input.value); input.focus(); });
  menuButton.addEventListener('click', () => offer(list.hidden ? commands : []));
  keysButton.addEventListener('click', () => { hidden = !hidden; drawKeys(); });

  refresh(chat, keyboard);
  drawKeys();
  grow();
  return { key, input, refresh, replyTo: replyTo_, take };
}
