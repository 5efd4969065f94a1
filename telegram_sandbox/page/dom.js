// Elements from names, properties and children. Text becomes text nodes: nothing is ever parsed as HTML.

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'class') element.className = value;
    else if (name === 'data') Object.assign(element.dataset, value);
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== 'string') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// replaceChildren() that leaves out what is not there.
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

// One of seven colours for whoever has this id.
export const tone = (id) => (Math.abs(id) + (id < 0 ? 3 : 0)) % 7;

const PATHS = {
  back: 'M15 5l-7 7 7 7',
  send: 'M4 12 20 4l-4 16-4-6-8-2zm8 2 8-10',
  clip: 'M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1 4.8 4.8l-8.4 8.4a1.6 1.6 0 0 1-2.3-2.3L14.5 7.5',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6 6 18',
  keyboard: 'M3 7h18v10H3zM7 10.5h.01M10.5 10.5h.01M14 10.5h.01M17.5 10.5h.01M8 14h8',
  reply: 'M9 7 4 12l5 5M4 12h9a7 7 0 0 1 7 7',
  forward: 'M15 7l5 5-5 5M20 12h-9a7 7 0 0 0-7 7',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  more: 'M12 5.5h.01M12 12h.01M12 18.5h.01',
  down: 'M6 9l6 6 6-6',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  out: 'M8 16 16 8M9 8h7v7',
  check: 'M3 12.5l4.5 4.5L16 8M11 16l1 1 9-9.5',
  megaphone: 'M4 10v4l3 .5L9 20h2l-1-5 9 4V5L8 9.5z',
  group: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14a6.5 6.5 0 0 1 3.5 6',
  bot: 'M5 9h14v9H5zM12 9V5M9 13h.01M15 13h.01M2.5 12v3M21.5 12v3',
};

export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', `icon icon-${name}`);
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', PATHS[name]);
  svg.append(path);
  return svg;
}

export function avatar(id, name, kind = '') {
  const initials = name.split(/\s+/).slice(0, 2).map((word) => [...word][0] || '').join('').toUpperCase();
  return h('span', { class: `avatar tone${tone(id)} ${kind}`, 'aria-hidden': 'true' }, initials);
}
