import type { IncidentListQuery, SessionListQuery } from '@nd7/vault-api';
import { keepPreviousData, QueryClient, useInfiniteQuery, useQuery } from '../ui/query.js';
import { useRouterState } from '../ui/router.js';
import { ApiError, type SessionAddress, signedOut, vault } from './client.js';

/** Rows of one page of the sessions list. */
const PAGE = 50;

/** One for the whole page: what the vault said last, kept while the reader goes about. */
export const answers = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // A proof is the very object that the worker's client stamped; sharing would put a copy in its place, and a copy proves nothing.
      structuralSharing: false,
      // An answer that says no is an answer; only silence is worth asking again.
      retry: (count, error) => count < 2 && isSilent(error),
      refetchOnWindowFocus: false,
    },
  },
});

// Whoever was signed in is not any more: asking who it is leads to the sign-in page.
signedOut.addEventListener('401', () => {
  const me = answers.getQueryState(['me']);
  if (me?.status === 'success') void answers.invalidateQueries({ queryKey: ['me'] });
});

/** Who is signed in; an error `signed-out` sends the shell to the sign-in page. */
export function useMe() {
  // The sign-in page is about to learn who it is: asking there only earns a 401.
  const enabled = useRouterState({ select: (state) => state.location.pathname !== '/sign-in' });
  return useQuery({
    queryKey: ['me'],
    queryFn: ({ signal }) => vault.me(signal),
    staleTime: 60_000,
    enabled,
    // A vault that was down comes back: whoever looks at the page need not load it anew.
    refetchInterval: (query) => (isSilent(query.state.error) ? 5_000 : false),
  });
}

const isSilent = (error: Error | null): boolean => error instanceof ApiError && error.code === 'unreachable';

/** Asks again for everything on the page that could not be had. */
export function askAgain(): void {
  void answers.refetchQueries({ predicate: (query) => query.state.status === 'error' });
}

/** How many incidents are open, asked for every half minute: the count beside the navigation is how a reader hears of one. */
export function useOpenIncidents(enabled: boolean) {
  return useQuery({
    queryKey: ['open incidents'],
    queryFn: async ({ signal }) => (await vault.incidents({ limit: 1 }, signal)).open ?? 0,
    refetchInterval: 30_000,
    enabled,
  });
}

/** The list of incidents by cursor; `state` for those that are open or over only. Asked for again every half minute. */
export function useIncidentPages(state: IncidentListQuery['state']) {
  return useInfiniteQuery({
    queryKey: ['incident pages', state],
    queryFn: ({ pageParam, signal }) =>
      vault.incidents({ limit: PAGE, state, ...(pageParam !== '' && { cursor: pageParam }) }, signal),
    initialPageParam: '',
    getNextPageParam: (last) => last.next_cursor,
    placeholderData: keepPreviousData,
    refetchInterval: 30_000,
  });
}

export function useIncident(id: string) {
  return useQuery({ queryKey: ['incident', id], queryFn: ({ signal }) => vault.incident(id, signal) });
}

export function useMachines() {
  return useQuery({ queryKey: ['machines'], queryFn: ({ signal }) => vault.machines(signal), staleTime: 30_000 });
}

type ListQuery = Pick<Partial<SessionListQuery>, 'machine' | 'agent' | 'state'>;

/** The sessions list by cursor. Nothing is refetched under the reader: new rows are announced by `useNewest`. */
export function useSessions(query: ListQuery) {
  return useInfiniteQuery({
    queryKey: ['sessions', query],
    queryFn: ({ pageParam, signal }) =>
      vault.sessions({ ...query, limit: PAGE, ...(pageParam !== '' && { cursor: pageParam }) }, signal),
    initialPageParam: '',
    getNextPageParam: (last) => last.next_cursor,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnMount: 'always',
  });
}

/** The newest rows, asked for every 20 s beside the list. */
export function useNewest(query: ListQuery, enabled: boolean) {
  return useQuery({
    queryKey: ['newest', query],
    queryFn: ({ signal }) => vault.sessions({ ...query, limit: PAGE }, signal),
    refetchInterval: 20_000,
    enabled,
  });
}

/** What the vault says of one session. An open one is asked for again every 10 s. */
export function useSession(at: SessionAddress) {
  return useQuery({
    queryKey: ['session', at.machine, at.session],
    queryFn: ({ signal }) => vault.session(at, signal),
    refetchInterval: (query) => (query.state.data?.state === 'open' ? 10_000 : false),
  });
}
