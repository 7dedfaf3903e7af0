// Flows in pg-boss: the shapes of shapes.py. RESOLVE_MS: look for ended parents in a loop, with this pause.
import { setTimeout as sleep } from 'node:timers/promises'
import { databaseUrl, handle, main, payload, ready, require } from '../peers/side.mjs'

const { PgBoss } = require('pg-boss')
const QUEUE = 'bench'
const LAYERS = 20
const PARENTS = 3

async function open(options) {
  // Without LISTEN/NOTIFY, with which it polls only twice a minute: no notification comes when a job is unblocked.
  const boss = new PgBoss({ connectionString: databaseUrl, flowIntervalSeconds: 1, ...options })
  boss.on('error', (error) => console.error(error))
  await boss.start()
  return boss
}

const parentsOf = {
  plain: () => [],
  fanout: (n) => (n === 0 ? [] : [0]),
  fanin: (n, count) => (n < count - 1 ? [] : Array.from({ length: count - 1 }, (_, i) => i)),
  layered: (n, count) => {
    const width = count / LAYERS
    const start = (Math.floor(n / width) - 1) * width
    return start < 0 ? [] : Array.from({ length: PARENTS }, (_, i) => start + ((n + i) % width))
  },
}

async function submitFlow(shape, count) {
  const boss = await open({ supervise: false, schedule: false })
  if (shape === 'plain') {
    await boss.insert(QUEUE, Array.from({ length: count }, () => ({ data: payload() })))
    return {}
  }
  await boss.flow(
    Array.from({ length: count }, (_, n) => ({
      ref: `${n}`,
      name: QUEUE,
      data: payload(),
      dependsOn: parentsOf[shape](n, count).map(String),
    })),
  )
  return {}
}

async function resolveInLoop(boss, pauseMs) {
  for (;;) {
    await boss.resolveFlow()
    await sleep(pauseMs)
  }
}

main({
  packages: ['pg-boss', 'pg'],
  commands: {
    'has-flows': async () => ({ has_flows: typeof PgBoss.prototype.flow === 'function' }),
    'submit-flow': ([shape, count]) => submitFlow(shape, Number(count)),
  },
  async prepare() {
    const boss = await open({})
    await boss.createQueue(QUEUE)
    await boss.stop({ graceful: false })
  },
  async submitter() {
    const boss = await open({ supervise: false, schedule: false })
    return {
      submitMany: (payloads) => boss.insert(QUEUE, payloads.map((data) => ({ data }))),
      submit: (one) => boss.send(QUEUE, one),
    }
  },
  async work() {
    const boss = await open({})
    const options = {
      batchSize: 1000,
      localConcurrency: 2,
      pollingIntervalSeconds: 0.5,
      burstWhenBatchFull: true,
    }
    await boss.work(QUEUE, options, async (jobs) => {
      await Promise.all(jobs.map((job) => handle(job.data.at)))
    })
    if (process.env.RESOLVE_MS) resolveInLoop(boss, Number(process.env.RESOLVE_MS))
    ready()
  },
})
