'use strict';
// Names, owners and errors come from other people. They become text and nothing else, and characters that are not
// seen, or that turn the text around, are replaced.
const $ = id => document.getElementById(id);
const clean = s => String(s).replace(/(?! )[\p{C}\p{Z}]/gu, '\uFFFD');
const put = (e, text) => { if (e.textContent !== text) e.textContent = text; };
// fill replaces what an element contains, unless it is the same as before, so that it keeps the focus.
const fill = (e, key, build) => { if (e.dataset.key !== key) { e.dataset.key = key; e.replaceChildren(...build()); } };
function make(tag, className, ...content) {
  const e = Object.assign(document.createElement(tag), { className });
  e.append(...content);
  return e;
}
const button = (className, content, onclick) => Object.assign(make('button', className, content), { onclick });
const bdi = s => make('bdi', '', clean(s));
const opener = (className, name, text = name) => button(className, bdi(text), () => enter(name)); // opens the lease

// What was read, and when. A poll asks the program lease ui, and the program lists the store.
let last = null, list = { leases: [], news: [] }, byName = new Map(), newest = new Map(), version = 0, unanswered = 0;

async function poll() {
  const asked = { mono: performance.now(), wall: Date.now() }, signal = AbortSignal.timeout(8000);
  const got = await fetch('leases.json?have=' + version, { signal }).then(r => r.ok ? r.json() : null).catch(() => null);
  unanswered = got ? 0 : unanswered + 1;
  if (got) last = Object.assign(got, asked);
  if (got?.list) arrive();
  tick();
}
// age is that of the list, in seconds. One of the two clocks may stand still while the machine sleeps.
const age = () => last.age + Math.max(performance.now() - last.mono, Date.now() - last.wall) / 1000;
const stale = () => last.error !== '' || age() > last.fresh;

const collator = new Intl.Collator('en', { numeric: true });
function arrive() {
  ({ version, list } = last);
  byName = new Map(list.leases.map(l => [l.name, l]));
  newest = new Map(list.news.map(c => [c.name, -c.at]).reverse());
  list.leases.sort((a, b) => collator.compare(a.name, b.name));
  put($('where'), clean(last.prefix + ' in ' + last.store));
  document.title = clean('Leases ' + last.prefix);
  news($('changes'), list.news, true);
  show();
}

function words(seconds, brief) {
  for (const [unit, letters, size] of [['day', 'd', 86400], ['hour', 'h', 3600], ['minute', 'min', 60]]) {
    if (seconds >= 2 * size) return Math.floor(seconds / size) + ' ' + (brief ? letters : unit + 's');
  }
  if (brief) return seconds.toFixed(seconds < 10 ? 1 : 0) + ' s';
  return Math.floor(seconds) + (Math.floor(seconds) === 1 ? ' second' : ' seconds');
}
const kind = l => l.error ? 'unreadable' : l.state === 'available' ? 'free' : l.state;
const locked = l => l.state === 'leased' || l.state === 'breaking';
const number = l => (l.token || '').replace(/^0+/, '');
const left = l => l.left_s < 0 ? Infinity : Math.max(0, (l.left_s || 0) + l.after_s - age());
function leftText(l) {
  if (!locked(l)) return '';
  if (left(l) === Infinity) return 'no end';
  return (left(l) > 0 || !stale() ? words(left(l), true) : 'over') + (stale() && l.state === 'leased' ? ', unless renewed' : '');
}
const ownerText = l => l.error || (l.owner && !locked(l) ? 'last: ' : '') + (l.owner || '');

// What is shown.
const views = ['leases', 'processes', 'timeline'];
let view = views[0], state = '', limit = 200;
function show() {
  for (const v of views) $('view-' + v).setAttribute('aria-pressed', !($(v).hidden = v !== view));
  counts();
  const part = $('filter').value.toLowerCase();
  const found = list.leases.filter(l => (state ? kind(l) === state : kind(l) !== 'free') && (l.name + ' ' + ownerText(l)).toLowerCase().includes(part));
  const by = { left: l => locked(l) ? Math.min(left(l), 1e12) : -1, changed: l => newest.get(l.name) ?? 0 }[$('sort').value];
  if (by) found.sort((a, b) => by(a) - by(b));
  if (view === 'leases') table(found);
  if (view === 'processes') processes(found);
  if (view === 'timeline') picture($('timeline'), 'filter=' + encodeURIComponent(part), 'The leases that changed last, over time');
  tick();
}
function counts() {
  const n = { '': list.leases.length };
  for (const l of list.leases) n[kind(l)] = (n[kind(l)] || 0) + 1;
  n[''] -= n.free || 0;
  for (const s of ['', 'leased', 'breaking', 'expired', 'broken', 'unreadable', 'free']) {
    const id = 'state-' + s;
    if (!$(id)) $('states').append(Object.assign(button('', '', () => { state = s; limit = 200; show(); }), { id }));
    $(id).hidden = !(s === '' || n[s] || state === s);
    $(id).setAttribute('aria-pressed', state === s);
    put($(id), (n[s] || 0).toLocaleString('en') + ' ' + (s || 'in all'));
  }
}
function news(into, all, named) {
  fill(into, JSON.stringify([all.length, all[0]]), () => all.length ? all.map(c => make('li', '', make('time', '', new Date(c.at).toLocaleTimeString('en-GB')), ' ',
    named && c.name ? opener('name', c.name) : '', ' ', bdi(c.text))) : [make('li', 'dim', 'Nothing, since this page was started.')]);
}

const rows = new Map();
function table(found) {
  const shown = found.slice(0, limit), keep = new Set(shown.map(l => l.name));
  for (const [name, r] of rows) {
    if (!keep.has(name)) { r.remove(); rows.delete(name); }
  }
  shown.forEach((l, i) => {
    let r = rows.get(l.name);
    if (!r) {
      const cells = [opener('name', l.name), make('span', 'state'), make('span', 'left'), bdi(''), ''].map(c => make('td', '', c));
      cells[2].append(make('span', 'bar', make('i', '')));
      r = make('tr', '', ...cells);
      for (const e of [r, ...cells]) e.setAttribute('role', e === r ? 'row' : 'cell');
      rows.set(l.name, r);
    }
    put(r.querySelector('.state'), kind(l));
    put(r.children[3].firstChild, clean(ownerText(l)));
    put(r.children[4], number(l));
    if ($('rows').children[i] !== r) $('rows').insertBefore(r, $('rows').children[i] || null);
  });
  $('more').hidden = found.length <= limit;
  put($('more'), 'Show more: ' + (found.length - limit).toLocaleString('en') + ' are not shown');
  $('none').hidden = found.length > 0;
  put($('none'), list.leases.length ? 'No lease is of this kind. The buttons above show others.' : 'There is no lease here.');
}
// processes puts what each process holds beside each other. A member of a group of shards that has none is shown too.
function processes(found) {
  const cards = new Map();
  for (const l of found) {
    const who = locked(l) ? l.process : '';
    if (l.role === 'announces' || !who && l.role === 'member') continue;
    if (!cards.has(who)) cards.set(who, []);
    if (l.role !== 'member') cards.get(who).push(l);
  }
  const sorted = [...cards].sort((a, b) => !a[0] - !b[0] || collator.compare(a[0], b[0])).slice(0, 100);
  const card = ([who, ls]) => {
    const n = {};
    for (const l of ls) n[l.role || 'lease'] = (n[l.role || 'lease'] || 0) + 1;
    const text = Object.entries(n).map(([k, n]) => n + ' ' + k + (n === 1 || k === 'waiting' ? '' : 's')).join(', ');
    const chips = ls.slice(0, 60).map(l => opener('chip ' + kind(l), l.name, l.role === 'shard' ? l.name.replace(/^.*?shards\//, '') : l.name));
    return make('div', 'card', make('h2', '', who ? bdi(who) : 'Held by nobody'), make('p', 'dim', text || 'nothing'),
      make('div', 'chips', ...chips, ls.length > 60 ? 'and ' + (ls.length - 60) + ' more' : ''));
  };
  fill($('processes'), JSON.stringify([cards.size, sorted.map(([who, ls]) => [who, ls.map(l => [l.name, kind(l)])])]),
    () => [...sorted.map(card), cards.size > 100 ? 'and ' + (cards.size - 100) + ' more processes' : '']);
}
// picture draws a timeline once for each list, and replaces the last drawing when the new one is complete.
async function picture(into, query, text) {
  const src = 'timeline.svg?' + query + '&v=' + version + (stale() ? '&age=' + Math.floor(age()) : '');
  if (into.dataset.src === src) return;
  into.dataset.src = src;
  const img = Object.assign(make('img', ''), { alt: text, src }), ok = await img.decode().then(() => true, () => false);
  if (ok && into.dataset.src.startsWith('timeline.svg?' + query + '&')) into.replaceChildren(img);
}

// tick shows how old the list is and how much time is left, without a request.
function tick() {
  if (!last) return put($('age'), unanswered ? 'The program “lease ui” does not answer.' : 'Reading the leases …');
  const ago = 'Read ' + (age() < 2 ? 'just now' : words(age()) + ' ago');
  put($('age'), ago);
  document.body.classList.toggle('stale', stale());
  const alarm = unanswered > 1 ? 'The program “lease ui” does not answer: it was ended, or the way to it is cut.'
    : last.error ? 'The store cannot be read.' : stale() ? 'The store has not been read again.' : '';
  $('alarm').hidden = !alarm;
  put($('alarm'), alarm + ' ' + ago + '. Since then, leases may have been renewed, have ended, or have other holders.\n' + clean(last.error));
  for (const [name, r] of view === 'leases' ? rows : []) {
    const l = byName.get(name);
    if (!l) continue;
    const t = left(l), part = !locked(l) ? 0 : t === Infinity ? 1 : Math.min(1, t / l.duration_s);
    r.className = kind(l) + (part < 1 / 3 && locked(l) ? ' low' : '');
    r.querySelector('i').style.transform = 'scaleX(' + part.toFixed(3) + ')';
    put(r.querySelector('.left'), leftText(l));
  }
  if ($('one').open) details();
}

// The dialog of one lease, and its break. asked is the lease as it was when the person was asked.
let current = '', asked = null;
function enter(name) {
  current = name;
  asking(null);
  put($('outcome'), '');
  $('one-picture').replaceChildren();
  $('one').showModal();
  details();
}
function details() {
  const l = byName.get(current), who = l && clean(l.owner || 'nobody known');
  let text = 'It is not in the list any more.';
  if (l?.error) text = 'Its record cannot be read: ' + clean(l.error);
  else if (l && locked(l)) text = kind(l) + ' by ' + who + ', token ' + number(l) + (l.duration_s > 0 ? ', for ' + words(l.duration_s, true) : '') + '. Time left: ' + leftText(l) + '.';
  else if (l) text = kind(l) + (l.owner ? ', last held by ' + who : '') + '.';
  put($('one-name'), clean(current));
  put($('one-text'), text);
  news($('one-changes'), list.news.filter(c => c.name === current), false);
  picture($('one-picture'), 'name=' + encodeURIComponent(current), 'The lease and its holders over time');
  $('ask').hidden = !(last.break && l && locked(l)) || asked !== null;
}
function asking(l) {
  asked = l;
  $('confirm').hidden = !l;
  if (!l) return;
  $('grace').value = Math.ceil(Math.max(30, l.enough_s));
  explain();
  $('leave').focus();
}
function explain() {
  const grace = Number($('grace').value), who = clean(asked.owner || 'The holder'), when = grace ? 'In at most ' + words(grace) : 'At once';
  put($('means'), who + ' is told to stop its work on ' + clean(asked.name) + '. ' + when + ' the lease is free, and the next holder begins, even if ' + who +
    ' has not stopped by then. This cannot be undone. ' + who + ' may take the lease again later: to prevent that, stop its process.');
  put($('short'), grace >= Math.min(asked.enough_s, left(asked)) ? '' :
    'This grace is short: a holder in Go without Options.Watch may take ' + words(asked.enough_s) + ' to stop, and the next holder does not wait for it.');
  put($('break'), 'Break it: ' + words(grace) + ' to stop');
}
async function breakIt() {
  const body = JSON.stringify({ name: asked.name, token: asked.token, grace: Number($('grace').value) });
  asking(null);
  put($('outcome'), 'Breaking …');
  const text = await fetch('break.json', { method: 'POST', body, signal: AbortSignal.timeout(25000) }).then(r => r.json())
    .catch(() => 'It is not known whether the lease is broken, because “lease ui” did not answer: look at the list.');
  put($('outcome'), clean(text));
  poll();
}

for (const v of views) $('views').append(Object.assign(button('', v[0].toUpperCase() + v.slice(1), () => { view = v; show(); }), { id: 'view-' + v }));
$('filter').oninput = $('sort').onchange = () => { limit = 200; show(); };
$('more').onclick = () => { limit *= 2; show(); };
$('close').onclick = () => $('one').close();
$('ask').onclick = () => { asking(byName.get(current)); details(); };
$('leave').onclick = () => { asking(null); details(); };
$('grace').oninput = explain;
$('confirm').onsubmit = e => { e.preventDefault(); breakIt(); };
document.onkeydown = e => {
  const focus = document.activeElement, typing = focus === $('filter');
  if (e.ctrlKey || e.altKey || e.metaKey || $('one').open || focus === $('sort')) return;
  if (typing && e.key === 'Escape') { $('filter').value = ''; focus.blur(); show(); }
  const stops = [...document.querySelectorAll('#rows .name, .chip')].filter(b => b.offsetParent), at = stops.indexOf(focus);
  const to = { ArrowDown: stops[at + 1], ArrowUp: stops[at - 1] || (at === 0 && $('filter')) }[e.key];
  if (to) { to.focus(); e.preventDefault(); }
  if (typing) return;
  if (views[e.key - 1]) $('view-' + views[e.key - 1]).click();
  if (e.key === '/') { $('filter').focus(); e.preventDefault(); }
};
document.onvisibilitychange = () => { if (!document.hidden) poll(); };
setInterval(tick, 250);
(async () => { for (;;) { await poll(); await new Promise(r => setTimeout(r, 1000)); } })();
