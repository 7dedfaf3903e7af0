// The side of a measured system in Node.js: handlers that count, and reports to the benchmark.
// Does what side.py does.
import { appendFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pbkdf2Sync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const [home, command, ...rest] = process.argv.slice(2)
export const require = createRequire(join(home, 'package.json'))
export const databaseUrl = process.env.DATABASE_URL
export const BATCH = 1000
const TEXT = 'a payload of fifty bytes or so'
const CPU_ITERATIONS = 4000
const REPORT_MS = 20

export const payload = (at = 0) => ({ at, text: TEXT })
export const nowUs = () => Math.round((performance.timeOrigin + performance.now()) * 1000)

const [kind, amount] = (process.env.PEERS_WORK ?? 'noop').split(':')
const sleepMs = kind === 'sleep' ? Number(amount) : 0
const isCpu = kind === 'cpu'
let count = 0
let reported = 0
let first = 0
let waited = []

function write(line) {
  appendFileSync(process.env.PEERS_REPORT, JSON.stringify({ pid: process.pid, ...line }) + '\n')
}

export const ready = () => write({ ready: true })

// The handler: a promise only where there is something to wait for.
export function handle(at) {
  if (first === 0) first = nowUs()
  if (at) waited.push(nowUs() - at)
  if (sleepMs) return sleep(sleepMs).then(() => { count += 1 })
  if (isCpu) pbkdf2Sync('laneway', 'bench', CPU_ITERATIONS, 32, 'sha256')
  count += 1
}

function report() {
  if (count === reported) return
  write({ n: count, first, at: nowUs(), waited })
  first = 0
  waited = []
  reported = count
}

function endWithBenchmark() {
  process.stdin.resume()
  process.stdin.on('end', () => process.kill(0, 'SIGKILL'))
}

async function submitMany(submitter, count) {
  const batches = []
  for (let n = 0; n < count; n += BATCH) {
    batches.push(Array.from({ length: Math.min(BATCH, count - n) }, () => payload()))
  }
  const began = performance.now()
  for (const batch of batches) await submitter.submitMany(batch)
  return { seconds: (performance.now() - began) / 1000 }
}

async function submit(submitter, count, interval) {
  const took = []
  for (let n = 0; n < count; n += 1) {
    if (interval) await sleep(1000 * interval * (0.5 + Math.random()))
    const began = performance.now()
    await submitter.submit(payload(nowUs()))
    took.push((performance.now() - began) / 1000)
  }
  return { seconds: took.reduce((sum, one) => sum + one, 0), took }
}

// program: { packages, prepare(), submitter(), work(), commands: { name: (arguments) => result } }
export async function main(program) {
  let result = {}
  if (command === 'versions') {
    for (const name of program.packages) {
      const path = join(home, 'node_modules', name, 'package.json')
      result[name] = JSON.parse(readFileSync(path, 'utf8')).version
    }
    result['Node.js'] = process.versions.node
  } else if (command === 'prepare') {
    await program.prepare()
  } else if (command === 'submit-many') {
    result = await submitMany(await program.submitter(), Number(rest[0]))
  } else if (command === 'submit') {
    result = await submit(await program.submitter(), Number(rest[0]), Number(rest[1]))
  } else if (command === 'work') {
    endWithBenchmark()
    setInterval(report, REPORT_MS)
    await program.work()
    return
  } else if (program.commands?.[command]) {
    result = await program.commands[command](rest)
  } else {
    throw new Error(`${command}: choose versions, prepare, submit-many, submit or work`)
  }
  process.stdout.write(JSON.stringify(result) + '\n', () => process.exit(0))
}
