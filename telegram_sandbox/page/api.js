// The control API of the sandbox, and the stream of what changes.

async function answerOf(response) {
  const data = await response.json().catch(() => ({ error: `${response.status}` }));
  if (!response.ok) throw new Error(data.error || `${response.status}`);
  return data;
}

export async function get(name, query = {}) {
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== null));
  return answerOf(await fetch(`/sandbox/${name}?${words}`));
}

export async function post(name, wish) {
  return answerOf(await fetch(`/sandbox/${name}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(wish),
  }));
}

export async function upload(fields, file) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined && value !== null) form.append(name, value);
  form.append('file', file, file.name);
  return answerOf(await fetch('/sandbox/upload', { method: 'POST', body: form }));
}

// onChange(event) for each change; onReload() when some were missed; onState(connected).
export function listen(after, onChange, onReload, onState) {
  let source;
  let seen = after;
  let again;
  const open = () => {
    source = new EventSource(`/sandbox/events?after=${seen}`);
    source.onopen = () => onState(true);
    source.onmessage = (event) => {
      seen = Number(event.lastEventId);
      onChange(JSON.parse(event.data));
    };
    source.addEventListener('reload', (event) => {
      seen = Number(event.lastEventId);
      onReload();
    });
    source.onerror = () => {
      onState(false);
      // A browser gives up for good after some errors; we do not.
      if (source.readyState === EventSource.CLOSED) {
        clearTimeout(again);
        again = setTimeout(open, 700);
      }
    };
  };
  open();
}
