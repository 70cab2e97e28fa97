import { once } from 'node:events'
import { withLock } from './leasehold.mjs'

const [until, key, ...flags] = process.argv.slice(2)
let isGranted = false
try {
  await withLock(key, async ({ token, signal }) => {
    isGranted = true
    console.log('granted', token)
    if (until === 'lost') {
      if (!signal.aborted) await once(signal, 'abort')
      console.log('told')
    } else {
      await once(process.stdin, 'data')
      console.log(signal.aborted ? 'told' : 'done')
    }
  }, flags)
} catch (e) {
  console.log(isGranted ? 'Lost' : 'NotGranted')
}
process.stdin.destroy()
