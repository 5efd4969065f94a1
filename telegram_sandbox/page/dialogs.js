// What appears above the page: toasts, questions, the menu of a message, a picture in full size.

import { avatar, h, icon } from './dom.js';
import { words } from './words.js';

const toasts = document.getElementById('toasts');

export function toast(text) {
  const element = h('div', { class: 'toast' }, text);
  toasts.append(element);
  setTimeout(() => element.remove(), Math.min(7000, 2500 + text.length * 40));
}

function open(content, kind, onClose) {
  const dialog = h('dialog', { class: `dialog ${kind}` }, content);
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener('close', () => {
    dialog.remove();
    onClose?.();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export function alertBox(text) {
  const ok = h('button', { type: 'button', class: 'act', autofocus: true }, 'OK');
  const dialog = open([h('p', {}, text), h('div', { class: 'acts' }, ok)], 'alert');
  dialog.setAttribute('role', 'alertdialog');
  ok.addEventListener('click', () => dialog.close());
  ok.focus();
}

export function viewer(address, caption) {
  const close = h('button', { type: 'button', class: 'plain', title: words.close }, icon('close'));
  const image = h('img', { src: address, alt: caption || words.photo });
  const dialog = open([close, image, caption ? h('p', {}, caption) : null].filter(Boolean), 'viewer');
  close.addEventListener('click', () => dialog.close());
  image.addEventListener('click', () => dialog.close());
}

// items: [{icon, text, deed}]
export function menu(items, x, y) {
  document.querySelector('.popup')?.remove();
  const element = h('div', { class: 'popup', role: 'menu' }, items.map((item) => h('button', {
    type: 'button',
    role: 'menuitem',
    onclick: () => { element.remove(); item.deed(); },
  }, icon(item.icon), item.text)));
  document.body.append(element);
  element.style.left = `${Math.max(8, Math.min(x, innerWidth - element.offsetWidth - 8))}px`;
  element.style.top = `${Math.max(8, Math.min(y, innerHeight - element.offsetHeight - 8))}px`;
  const away = (event) => {
    if (element.contains(event.target)) return;
    element.remove();
    removeEventListener('pointerdown', away, true);
  };
  addEventListener('pointerdown', away, true);
  element.querySelector('button')?.focus();
}

export function chooseChat(chats, deed) {
  const list = h('div', { class: 'choices' }, chats.map((chat) => h('button', {
    type: 'button', onclick: () => { dialog.close(); deed(chat); },
  }, avatar(chat.bot?.id ?? chat.chat, chat.title), chat.title)));
  const dialog = open([h('h2', {}, words.forwardTo), list], 'choose');
}

// Asks for a caption, and whether a picture goes as a photo; deed(caption, kind).
export function sendFile(file, deed) {
  const isPicture = /^image\/(png|jpeg|gif|webp)$/.test(file.type);
  const preview = isPicture ? URL.createObjectURL(file) : null;
  const caption = h('input', { type: 'text', placeholder: words.caption, maxlength: '1024', 'aria-label': words.caption });
  const asPhoto = h('input', { type: 'checkbox', checked: true });
  const send = h('button', { type: 'submit', class: 'act' }, words.send);
  const cancel = h('button', { type: 'button', class: 'act quiet' }, words.cancel);
  const form = h('form', { method: 'dialog' },
    preview ? h('img', { src: preview, alt: '' }) : h('div', { class: 'document' }, h('span', { class: 'badge' }, icon('file')), h('b', {}, file.name)),
    isPicture ? h('label', {}, asPhoto, words.asPhoto) : null,
    caption, h('div', { class: 'acts' }, cancel, send));
  const dialog = open(form, 'file', () => preview && URL.revokeObjectURL(preview));
  cancel.addEventListener('click', () => dialog.close());
  form.addEventListener('submit', () => deed(caption.value, isPicture && asPhoto.checked ? 'photo' : 'document'));
  caption.focus();
}
