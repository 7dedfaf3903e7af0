import { databaseUrl, handle, main, ready, require } from '../../side.mjs'

const { PgBoss } = require('pg-boss')
const QUEUE = 'bench'

async function open(options) {
  const boss = new PgBoss({ connectionString: databaseUrl, useListenNotify: true, ...options })
  boss.on('error', (error) => console.error(error))
  await boss.start()
  return boss
}

main({
  packages: ['pg-boss', 'pg'],
  async prepare() {
    const boss = await open({})
    await boss.createQueue(QUEUE, { notify: true })
    await boss.stop({ graceful: false })
  },
  async submitter() {
    const boss = await open({ supervise: false, schedule: false, useListenNotify: false })
    return {
      submitMany: (payloads) => boss.insert(QUEUE, payloads.map((data) => ({ data }))),
      submit: (payload) => boss.send(QUEUE, payload),
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
    ready()
  },
})
