import { hashInWorker, workerScript } from '../check/worker-client.js';
import { useQuery } from '../ui/query.js';

/** BLAKE3 of the checking worker's script as this page was given it, to be compared with a build's. A page cannot prove its own code. */
export function useVerifierHash(enabled: boolean): string | undefined {
  const { data } = useQuery({
    queryKey: ['verifier'],
    queryFn: async () => {
      const script = await workerScript();
      return script === undefined ? null : hashInWorker(script);
    },
    enabled,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return data ?? undefined;
}
