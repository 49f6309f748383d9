'use strict';
// Names, owners and errors come from other people. They become text and nothing else, and characters that are not
// seen, or that turn the text around, are replaced.
const $ = id => document.getElementById(id);
const clean = s => String(s).replace(/(?! )[\p{C}\p{Z}]/gu, '\uFFFD');
const put = (e, text) => { if (e.textContent !== text) e.textContent = text; };
function make(tag, className, ...content) {
  const e = Object.assign(document.createElement(tag), { className });
  e.append(...content);
  return e;
}
const button = (className, content, onclick) => Object.assign(make('button', className, ...content), { onclick });
const bdi = s => make('bdi', '', clean(s));
const opener = name => button('name', [bdi(name)], () => enter(name)); // opens the lease

// What was read, and when. A poll asks the program lease ui, and the program lists the store.
let last = null, list = { Leases: [], Changes: [] }, byName = new Map(), version = 0, unanswered = 0;

async function poll() {
  const asked = { mono: performance.now(), wall: Date.now() };
  let got = null;
  try {
    const r = await fetch('leases.json?have=' + version, { signal: AbortSignal.timeout(8000) });
    if (r.ok) got = await r.json();
  } catch (e) { /* no answer */ }
  unanswered = got ? 0 : unanswered + 1;
  if (got) last = Object.assign(got, asked);
  if (got?.List) arrive();
  tick();
}
// age is that of the list, in seconds. One of the two clocks may stand still while the machine sleeps.
const age = () => last.Age + Math.max(performance.now() - last.mono, Date.now() - last.wall) / 1000;
const stale = () => !last || !last.Version || last.Error !== '' || age() > last.Fresh;

const collator = new Intl.Collator('en', { numeric: true });
function arrive() {
  ({ Version: version, List: list } = last);
  byName = new Map(list.Leases.map(l => [l.Name, l]));
  list.Leases.sort((a, b) => collator.compare(a.Name, b.Name));
  put($('where'), clean(last.Prefix + ' in ' + last.Store));
  document.title = clean('Leases ' + last.Prefix);
  changes($('changes'), list.Changes, true);
  show();
}

function words(seconds, brief) {
  for (const [unit, letters, size] of [['day', 'd', 86400], ['hour', 'h', 3600], ['minute', 'min', 60]]) {
    if (seconds >= 2 * size) return Math.floor(seconds / size) + ' ' + (brief ? letters : unit + 's');
  }
  if (brief) return seconds.toFixed(seconds < 10 ? 1 : 0) + ' s';
  return Math.floor(seconds) + (Math.floor(seconds) === 1 ? ' second' : ' seconds');
}
const kind = l => l.Error ? 'unreadable' : l.State === 'available' ? 'free' : l.State;
const locked = l => l.State === 'leased' || l.State === 'breaking';
const number = l => (l.Token || '').replace(/^0+/, '');
const left = l => l.Ends === null ? Infinity : Math.max(0, l.Ends - age());
function leftText(l) {
  if (l.Error || !locked(l)) return '';
  if (left(l) === Infinity) return 'no end';
  if (!stale()) return words(left(l), true);
  return (left(l) > 0 ? words(left(l), true) : 'over') + (l.State === 'leased' ? ', unless renewed' : '');
}
const ownerText = l => l.Error || (l.Holder ? (locked(l) ? '' : 'last: ') + l.Holder : '');

// What is shown.
const views = ['leases', 'processes', 'timeline'];
let view = views[0], state = '', limit = 200;
function show() {
  views.forEach(v => {
    $(v).hidden = v !== view;
    $('view-' + v).setAttribute('aria-pressed', v === view);
  });
  counts();
  const part = $('filter').value.toLowerCase();
  const has = l => l.Name.toLowerCase().includes(part) || ownerText(l).toLowerCase().includes(part);
  let found = list.Leases.filter(l => (state ? kind(l) === state : kind(l) !== 'free') && has(l));
  const by = { left: l => locked(l) ? Math.min(left(l), 1e12) : -1, changed: l => -l.Changed }[$('sort').value];
  if (by) found = found.map(l => [by(l), l]).sort((a, b) => a[0] - b[0]).map(p => p[1]);
  if (view === 'leases') table(found);
  if (view === 'processes') processes(found);
  if (view === 'timeline') picture($('timeline'), 'filter=' + encodeURIComponent(part), 'The leases that changed last, over time');
  tick();
}
function counts() {
  const n = { '': list.Leases.length };
  for (const l of list.Leases) n[kind(l)] = (n[kind(l)] || 0) + 1;
  n[''] -= n.free || 0;
  for (const s of ['', 'leased', 'breaking', 'expired', 'broken', 'unreadable', 'free']) {
    const id = 'state-' + s;
    if (!$(id)) $('states').append(Object.assign(button('', [], () => { state = s; limit = 200; show(); }), { id }));
    $(id).hidden = !(s === '' || n[s] || state === s);
    $(id).setAttribute('aria-pressed', state === s);
    put($(id), (n[s] || 0).toLocaleString('en') + ' ' + (s || 'not free'));
  }
}
function changes(into, all, named) {
  const key = all.length ? all.length + ' ' + all[0].At + ' ' + all[0].Name : 'none';
  if (into.dataset.key === key) return;
  into.dataset.key = key;
  into.replaceChildren(...all.map(c => make('li', '', make('time', '', new Date(c.At).toLocaleTimeString('en-GB')),
    named && c.Name ? opener(c.Name) : '', ' ', bdi(c.Text))));
  if (!all.length) into.append(make('li', 'dim', 'Nothing, since this page was started.'));
}

const rows = new Map();
function table(found) {
  const shown = found.slice(0, limit), keep = new Set(shown.map(l => l.Name));
  for (const [name, r] of rows) {
    if (!keep.has(name)) { r.remove(); rows.delete(name); }
  }
  shown.forEach((l, i) => {
    let r = rows.get(l.Name);
    if (!r) {
      const cells = [opener(l.Name), make('span', 'state'), make('span', 'left'), bdi(''), ''].map(c => make('td', '', c));
      cells[2].append(make('span', 'bar', make('i', '')));
      r = make('tr', '', ...cells);
      for (const e of [r, ...cells]) e.setAttribute('role', e === r ? 'row' : 'cell');
      rows.set(l.Name, r);
    }
    put(r.querySelector('.state'), kind(l));
    put(r.children[3].firstChild, clean(ownerText(l)));
    put(r.children[4], number(l));
    if ($('rows').children[i] !== r) $('rows').insertBefore(r, $('rows').children[i] || null);
  });
  $('more').hidden = found.length <= limit;
  put($('more'), 'Show more: ' + (found.length - limit).toLocaleString('en') + ' are not shown');
  $('none').hidden = found.length > 0;
  put($('none'), list.Leases.length ? 'No lease is of this kind. The buttons above show others.' : 'There is no lease here.');
}
// processes puts what each process holds beside each other. A member of a group of shards that has none is shown too.
function processes(found) {
  const cards = new Map();
  for (const l of found) {
    const who = locked(l) ? l.Process : '';
    if (l.Kind === 'announces' || !who && l.Kind === 'member') continue;
    if (!cards.has(who)) cards.set(who, []);
    if (l.Kind !== 'member') cards.get(who).push(l);
  }
  const sorted = [...cards].sort((a, b) => !a[0] - !b[0] || collator.compare(a[0], b[0])).slice(0, 100);
  const key = JSON.stringify([cards.size, sorted.map(([who, ls]) => [who, ls.map(l => [l.Name, kind(l)])])]);
  if ($('processes').dataset.key === key) return; // it keeps the focus
  $('processes').dataset.key = key;
  $('processes').replaceChildren(...sorted.map(([who, ls]) => {
    const n = {};
    for (const l of ls) n[l.Kind || 'lease'] = (n[l.Kind || 'lease'] || 0) + 1;
    const text = Object.entries(n).map(([k, n]) => n + ' ' + k + (n === 1 || k === 'waiting' ? '' : 's')).join(', ');
    const chips = ls.slice(0, 60).map(l => button('chip ' + kind(l), [bdi(l.Kind === 'shard' ? l.Name.replace(/^.*?shards\//, '') : l.Name)], () => enter(l.Name)));
    if (ls.length > 60) chips.push('and ' + (ls.length - 60) + ' more');
    return make('div', 'card', make('h2', '', who ? bdi(who) : 'Held by nobody'), make('p', 'dim', text || 'nothing'), make('div', 'chips', ...chips));
  }));
  if (cards.size > 100) $('processes').append('and ' + (cards.size - 100) + ' more processes');
}
// picture draws a timeline once for each list, and replaces the last drawing when the new one is complete.
async function picture(into, query, text) {
  const src = 'timeline.svg?' + query + '&v=' + version + (stale() ? '&age=' + Math.floor(age()) : '');
  if (into.dataset.src === src) return;
  into.dataset.src = src;
  const img = Object.assign(make('img', ''), { alt: text, src });
  try { await img.decode(); } catch (e) { return; }
  if (into.dataset.src.startsWith('timeline.svg?' + query + '&')) into.replaceChildren(img);
}

// tick shows how old the list is and how much time is left, without a request.
function tick() {
  if (!last) return put($('age'), unanswered ? 'The program “lease ui” does not answer.' : 'Reading the leases …');
  const isStale = stale(), ago = 'Read ' + (age() < 2 ? 'just now' : words(age()) + ' ago');
  const old = last.Version ? ago + '. Since then, leases may have been renewed, have ended, or have other holders.' : 'Nothing was read yet.';
  put($('age'), last.Version ? ago : 'Nothing was read yet');
  document.body.classList.toggle('stale', isStale);
  let alarm = isStale ? 'The store has not been read again. ' + old : '';
  if (last.Error) alarm = 'The store cannot be read. ' + old + '\n' + clean(last.Error);
  if (unanswered > 1) alarm = 'The program “lease ui” does not answer: it was ended, or the way to it is cut. ' + old;
  $('alarm').hidden = !alarm;
  put($('alarm'), alarm);
  if (view === 'leases') {
    for (const [name, r] of rows) {
      const l = byName.get(name);
      if (!l) continue;
      const t = left(l), part = !locked(l) ? 0 : t === Infinity ? 1 : Math.min(1, t / (l.Duration || t || 1));
      r.className = kind(l) + (part < 1 / 3 && locked(l) ? ' low' : '');
      r.querySelector('i').style.transform = 'scaleX(' + part.toFixed(3) + ')';
      put(r.querySelector('.left'), leftText(l));
    }
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
  const l = byName.get(current), who = l && clean(l.Holder || 'nobody known');
  let text = 'It is not in the list any more.';
  if (l?.Error) text = 'Its record cannot be read: ' + clean(l.Error);
  else if (l && locked(l)) text = kind(l) + ' by ' + who + ', token ' + number(l) + '. Time left: ' + leftText(l) + (l.Duration ? ' of ' + words(l.Duration, true) : '') + '.';
  else if (l) text = kind(l) + (l.Holder ? ', last held by ' + who : '') + '.';
  put($('one-name'), clean(current));
  put($('one-text'), text);
  changes($('one-changes'), list.Changes.filter(c => c.Name === current), false);
  picture($('one-picture'), 'name=' + encodeURIComponent(current), 'The lease and its holders over time');
  $('ask').hidden = !(last.Break && l && locked(l)) || asked !== null;
}
function asking(l) {
  asked = l;
  $('confirm').hidden = !l;
  if (!l) return;
  $('grace').value = Math.ceil(Math.max(30, l.Enough || 0));
  explain();
  $('leave').focus();
}
function explain() {
  const grace = Number($('grace').value), who = clean(asked.Holder), when = grace ? 'In at most ' + words(grace) : 'At once';
  put($('means'), who + ' is told to stop its work on ' + clean(asked.Name) + '. ' + when + ' the lease is free, and the next holder begins, even if ' + who +
    ' has not stopped by then. This cannot be undone. ' + who + ' may take the lease again later: to prevent that, stop its process.');
  put($('short'), grace >= Math.min(asked.Enough || 0, left(asked)) ? '' :
    'This grace is short: a holder in Go without Options.Watch may take ' + words(asked.Enough) + ' to stop, and the next holder does not wait for it.');
  put($('break'), 'Break it: ' + words(grace) + ' to stop');
}
async function breakIt() {
  const body = JSON.stringify({ name: asked.Name, token: asked.Token, grace: Number($('grace').value) });
  asking(null);
  put($('outcome'), 'Breaking …');
  let text = 'It is not known whether the lease is broken, because “lease ui” did not answer: look at the list.';
  try {
    text = (await (await fetch('break.json', { method: 'POST', body, signal: AbortSignal.timeout(25000) })).json());
  } catch (e) { /* then the outcome is unknown */ }
  put($('outcome'), clean(text));
  poll();
}

views.forEach(v => $('views').append(Object.assign(button('', [v[0].toUpperCase() + v.slice(1)], () => { view = v; show(); }), { id: 'view-' + v })));
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
