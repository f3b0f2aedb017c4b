# Semaphores, shared memory, mappings, pools, asyncio, pseudo-terminals.
# needs: python3
cat > shares.py <<'P'
import asyncio, fcntl, mmap, multiprocessing as mp, os, pty, signal, subprocess, tempfile, threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory

def square(x): return x * x
def child(memory, semaphore):
    semaphore.acquire()
    part = shared_memory.SharedMemory(name=memory); part.buf[:5] = b'child'; part.close()
    semaphore.release()

if __name__ == '__main__':
    for way in ('fork', 'spawn', 'forkserver'):
        with mp.get_context(way).Pool(2) as pool: print(way, pool.map(square, range(5)))
    with ProcessPoolExecutor(2) as pool: print('executor', list(pool.map(square, [7])))
    memory, semaphore = shared_memory.SharedMemory(create=True, size=100), mp.Semaphore(1)
    process = mp.Process(target=child, args=(memory.name, semaphore)); process.start(); process.join()
    print('shared memory', bytes(memory.buf[:5])); memory.close(); memory.unlink()
    queue = mp.Queue(); queue.put('queued'); print(queue.get())
    with open('mapped', 'w+b') as file:
        file.truncate(8192); view = mmap.mmap(file.fileno(), 8192); view[4096:4102] = b'mapped'; view.flush(); view.close()
    print(open('mapped', 'rb').read()[4096:4102])
    anonymous = mmap.mmap(-1, 4096)
    if os.fork() == 0: anonymous[:4] = b'anon'; os._exit(0)
    os.wait(); print(anonymous[:4])
    async def main():
        process = await asyncio.create_subprocess_exec('cat', stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        print('asyncio', (await process.communicate(b'piped'))[0])
        server = await asyncio.start_server(lambda r, w: (w.write(b'tcp'), w.close()), '127.0.0.1', 0)
        reader, _ = await asyncio.open_connection(*server.sockets[0].getsockname())
        print(await reader.read()); server.close()
    asyncio.run(main())
    pid, fd = pty.fork()
    if pid == 0: os.execvp('sh', ['sh', '-c', 'test -t 0 && stty size && echo at a terminal'])
    text = b''
    try:
        while (more := os.read(fd, 1000)): text += more
    except OSError: pass
    os.waitpid(pid, 0); print(text.split(b'\r\n')[1:])
    with open('locked', 'w') as file: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB); fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB); print('locked')
    with tempfile.TemporaryFile() as file: file.write(b'x'); print('nameless', file.tell())
    memfd = os.memfd_create('m'); os.write(memfd, b'm'); print('memfd', os.pread(memfd, 1, 0))
    read, write = os.pipe2(os.O_CLOEXEC); print('pipe', fcntl.fcntl(write, 1031, 1 << 20) >= 1 << 20)
    signal.signal(signal.SIGALRM, lambda *_: print('alarm')); signal.setitimer(signal.ITIMER_REAL, 0.05); signal.pause()
    event = threading.Event(); threading.Timer(0.05, event.set).start(); print('thread', event.wait(5))
    print('cpus', len(os.sched_getaffinity(0)) == os.cpu_count()); os.nice(1); os.setpriority(os.PRIO_PROCESS, 0, 5); print(os.getpriority(os.PRIO_PROCESS, 0))
P
python3 shares.py
