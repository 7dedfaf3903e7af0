import { databaseUrl, handle, main, ready, require } from '../../side.mjs'

const { run, makeWorkerUtils, runMigrations, Logger } = require('graphile-worker')
const isBatched = process.env.PEERS_CONFIG === 'batched'
const logger = new Logger(() => () => {})

main({
  packages: ['graphile-worker', 'pg'],
  prepare: () => runMigrations({ connectionString: databaseUrl, logger }),
  async submitter() {
    const utils = await makeWorkerUtils({ connectionString: databaseUrl, logger })
    return {
      submitMany: (payloads) =>
        utils.addJobs(payloads.map((payload) => ({ identifier: 'bench', payload }))),
      submit: (payload) => utils.addJob('bench', payload),
    }
  },
  async work() {
    // The example of its page on performance, with a larger local queue and no delay. A thousand
    // jobs at once cost more than a hundred if they end at once.
    const isWaiting = (process.env.PEERS_WORK ?? '').startsWith('sleep')
    const batched = {
      concurrentJobs: isWaiting ? 1000 : 100,
      preset: {
        worker: { localQueue: { size: 1000 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
      },
    }
    const { concurrentJobs, preset } = isBatched ? batched : {}
    await run({
      connectionString: databaseUrl,
      taskList: { bench: (payload) => handle(payload.at) },
      noHandleSignals: true,
      logger,
      ...(concurrentJobs ? { concurrency: concurrentJobs } : {}),
      ...(preset ? { preset } : {}),
    })
    ready()
  },
})
