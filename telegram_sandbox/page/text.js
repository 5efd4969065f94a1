// Formatted text: a message's text and entities become elements. JavaScript counts in UTF-16 units, as Telegram does.

import { h, icon } from './dom.js';
import { words } from './words.js';

const SAFE = /^(https?|tg|mailto|ftp):/i;

export function richText(text, entities, actions) {
  const sorted = [...(entities || [])].sort((a, b) => a.offset - b.offset || b.length - a.length);
  return nested(text, 0, text.length, sorted, actions);
}

function nested(text, start, end, entities, actions) {
  const fragment = document.createDocumentFragment();
  let at = start;
  for (let index = 0; index < entities.length; index += 1) {
    const entity = entities[index];
    const from = Math.max(entity.offset, at);
    const to = Math.min(entity.offset + entity.length, end);
    if (to <= from) continue;
    fragment.append(text.slice(at, from));
    const inner = entities.slice(index + 1).filter((e) => e.offset < to && e.offset + e.length > from);
    const content = nested(text, from, to, inner, actions);
    fragment.append(wrapped(entity, content, text.slice(from, to), actions));
    at = to;
  }
  fragment.append(text.slice(at, end));
  return fragment;
}

function wrapped(entity, content, shown, actions) {
  switch (entity.type) {
    case 'bold': return h('strong', {}, content);
    case 'italic': return h('em', {}, content);
    case 'underline': return h('u', {}, content);
    case 'strikethrough': return h('s', {}, content);
    case 'spoiler': return spoiler(content);
    case 'code': return h('code', { title: words.copy, onclick: () => actions.copy(shown) }, content);
    case 'pre': return pre(entity.language, content, shown, actions);
    case 'blockquote': return h('blockquote', {}, content);
    case 'expandable_blockquote': return expandable(content);
    case 'bot_command':
      return h('a', { href: '#', class: 'command', onclick: stop(() => actions.say(shown)) }, content);
    case 'mention': return h('a', { href: '#', onclick: stop(() => actions.mention(shown.slice(1))) }, content);
    case 'email': return link(`mailto:${shown}`, content, actions);
    case 'url': return link(/^[a-z][a-z0-9+.-]*:/i.test(shown) ? shown : `http://${shown}`, content, actions);
    case 'text_link': return link(entity.url, content, actions);
    case 'hashtag':
    case 'text_mention': return h('span', { class: 'mention' }, content);
    default: return h('span', {}, content);
  }
}

const stop = (deed) => (event) => {
  event.preventDefault();
  event.stopPropagation();
  deed();
};

function link(address, content, actions) {
  if (!SAFE.test(address)) return h('span', {}, content);
  return h('a', {
    href: address,
    title: address,
    target: '_blank',
    rel: 'noopener noreferrer nofollow',
    onclick: (event) => { if (actions.followed(address)) event.preventDefault(); },
  }, content);
}

function spoiler(content) {
  const element = h('span', { class: 'spoiler', role: 'button', tabindex: '0' }, content);
  const reveal = (event) => {
    if (element.classList.contains('shown')) return;
    event.preventDefault();
    event.stopPropagation();
    element.classList.add('shown');
  };
  element.addEventListener('click', reveal, true);
  element.addEventListener('keydown', (event) => { if (event.key === 'Enter') reveal(event); });
  return element;
}

function pre(name, content, shown, actions) {
  const copy = h('button', { type: 'button', class: 'plain', title: words.copy, onclick: stop(() => actions.copy(shown)) }, icon('copy'));
  return h('div', { class: 'pre' }, h('div', { class: 'pre-head' }, h('span', {}, name || ''), copy), h('pre', {}, h('code', {}, content)));
}

function expandable(content) {
  const quote = h('blockquote', { class: 'folded' }, content);
  quote.addEventListener('click', () => quote.classList.toggle('folded'));
  return quote;
}

// {start: {bot, code}} | {chat: name, message} | null: what a link of Telegram means in here.
export function insideLink(address) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (url.protocol === 'tg:') {
    const name = url.searchParams.get('domain');
    return name ? { name, code: url.searchParams.get('start') || '' } : null;
  }
  if (!/^(www\.)?(t\.me|telegram\.me|telegram\.dog)$/i.test(url.hostname)) return null;
  const [name, message] = url.pathname.split('/').filter(Boolean);
  return name ? { name, message: Number(message) || null, code: url.searchParams.get('start') || '' } : null;
}
