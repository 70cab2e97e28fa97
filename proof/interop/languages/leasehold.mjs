// A lock on DynamoDB, held by the command leasehold. Needs Node 18, on Linux or macOS.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/**
 * Holds key while work runs. flags are the flags of leasehold run. work gets the fencing
 * token, which is higher for each grant, and a signal that is aborted before another
 * client can be granted the key.
 */
export async function withLock(key, work, flags = []) {
  const command = ['run', key, '--events', '3', ...flags, '--', 'cat']
  const child = spawn('leasehold', command, { // in a new session, so that Ctrl-C reaches only this program
    stdio: ['pipe', 'pipe', 'inherit', 'pipe'], detached: true,
  })
  const exited = once(child, 'exit')
  const token = await Promise.race([granted(child.stdio[3]), exited.then(([code]) => {
    throw new Error(`${key} was not granted: leasehold ended with ${code}`)
  })])
  const lost = new AbortController()
  let released = false
  // cat ends when leasehold stops it because the lock is lost, or when its stdin is closed.
  child.stdout.resume().on('end', () => released || lost.abort(new Error(`${key} was lost`)))
  let result, code
  try {
    result = await work({ token, signal: lost.signal })
  } finally {
    released = true
    child.stdin.end();
    [code] = await exited
  }
  if (code !== 0) throw new Error(`${key} was lost: the work may be half done`)
  return result
}

async function granted(events) {
  const lines = createInterface({ input: events })
  return new Promise((resolve) => lines.on('line', (line) => {
    const event = JSON.parse(line)
    if (event.event === 'granted') resolve(event.token)
  }))
}
