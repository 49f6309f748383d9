// Every cell of the outcome tables, through the JavaScript SDK:
//
//   node cells.mjs <modules> <cells.json> <connection string> <clock URL>
//
// Prints a line for every cell that is not as the table says, and the number of cells.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const [modules, tables, connection, clock] = process.argv.slice(2)
const { BlobServiceClient } = createRequire(modules + '/')('@azure/storage-blob')
const service = BlobServiceClient.fromConnectionString(connection, { retryOptions: { maxTries: 1 } })

const ids = {
  A: 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa',
  B: 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb',
  C: 'cccccccc-cccc-4ccc-8ccc-cccccccccccc',
}

async function advance(time) {
  const res = await fetch(`${clock}?advance=${time}`, { method: 'POST' })
  if (!res.ok) throw new Error(`clock: ${res.status}`)
}

function readCells() {
  return JSON.parse(readFileSync(tables, 'utf8')).map((cell) => ({ code: '', ...cell, action: cell.action.split(' ') }))
}

// The two kinds of resource. A container is written by deleting it; for everything else its
// lease is only read. (This SDK's getProperties of a container sends no lease ID.)
const kinds = {
  blob: {
    client: (c) => c.getBlockBlobClient('a blob/with ümläut?'),
    read: (b, conditions) => b.getProperties({ conditions }),
    write: (b, conditions) => b.upload('again', 5, { conditions }),
    code: 'Blob',
  },
  container: {
    client: (c) => c,
    read: (c, conditions) => c.setMetadata({}, { conditions }),
    write: (c, conditions) => c.delete({ conditions }),
    code: 'Container',
  },
}

async function run(cell, kind, name) {
  const container = service.getContainerClient(name)
  await container.create()
  await container.getBlockBlobClient('a blob/with ümläut?').upload('hello', 5)
  const { client, read, write, code } = kinds[kind]
  const target = client(container)
  const lease = (letter) => target.getBlobLeaseClient(ids[letter])
  const state = async () => (await target.getProperties()).leaseState

  if (cell.state !== 'Available') await lease('A').acquireLease(15)
  if (cell.state === 'Breaking(A)') await lease('A').breakLease(10)
  if (cell.state === 'Broken(A)') await lease('A').breakLease(0)
  if (cell.state === 'Expired(A)') await advance('15s')

  const [verb, id, proposed] = cell.action
  const conditions = ids[id] ? { leaseId: ids[id] } : {}
  const wanted = cell.code.replace('*', code)
  try {
    let answer
    switch (verb) {
      case 'write': answer = await write(target, conditions); break
      case 'read': answer = await read(target, conditions); break
      case 'acquire': answer = await target.getBlobLeaseClient(ids[id]).acquireLease(60); break
      case 'renew': answer = await lease(id).renewLease(); break
      case 'change': answer = await lease(id).changeLease(ids[proposed]); break
      case 'release': answer = await lease(id).releaseLease(); break
      case 'break': answer = await lease('C').breakLease(id === 'none' ? undefined : +id); break
      case 'expire': await advance('1m'); break
    }
    if (wanted) return `succeeds, want ${wanted}`
    if (verb === 'acquire' && id !== 'none' && answer.leaseId !== ids[id]) return `lease ID ${answer.leaseId}`
    if (verb === 'change' && answer.leaseId !== ids[proposed]) return `lease ID ${answer.leaseId}`
    if (verb === 'break' && !(answer.leaseTime >= 0)) return `lease time ${answer.leaseTime}`
  } catch (e) {
    const got = e.code ?? e.details?.errorCode
    if (!wanted || got !== wanted || e.statusCode !== cell.status) return `${e.statusCode} ${got} ${e.message}, want ${cell.status} ${wanted}`
  }
  if (verb === 'write' && kind === 'container' && !wanted) return ''
  const got = await state(), want = cell.after.split('(')[0].toLowerCase()
  return got === want ? '' : `state ${got}, want ${want}`
}

let count = 0
for (const cell of readCells()) {
  for (const kind of Object.keys(kinds)) {
    const wrong = await run(cell, kind, `${kind}-${count++}`).catch((e) => String(e))
    if (wrong) console.log(`${kind} ${cell.state} ${cell.action.join(' ')}: ${wrong}`)
  }
}
console.log(`${count} cells`)
