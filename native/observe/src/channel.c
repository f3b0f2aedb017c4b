/* What the supervisor and its front say to each other. */
#define _GNU_SOURCE
#include "observe.h"

#include "launch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum told_kind { TOLD_READY = 1, TOLD_EVENT, TOLD_ASK, TOLD_DROPPED = 5, TOLD_WIDENED, TOLD_NARROWED, TOLD_LEARNED, TOLD_CONNECTED };
#define EVENTS_A_SECOND 1000u

/* A thread that asks waits on its own question. */
struct waiting {
  struct waiting *next;
  uint32_t id;
  bool is_answered;
  int error;
  unsigned char *given;
  size_t length;
};

static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER, asking = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static struct waiting *all_waiting;
static uint32_t last_id;

static void put32(unsigned char *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (8 * i));
}

/* Sends whole frames only: a front that reads slowly is waited for, one that has gone ends everything. Holds `writing`. */
static void send_parts(struct iovec *parts, int count) {
  while (count > 0) {
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
    ssize_t n = sendmsg(OBSERVE_CHANNEL, &message, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(125);
    while (count > 0 && (size_t)n >= parts->iov_len) {
      n -= (ssize_t)parts->iov_len;
      parts++;
      count--;
    }
    if (count > 0) {
      parts->iov_base = (char *)parts->iov_base + n;
      parts->iov_len -= (size_t)n;
    }
  }
}

static void send_frame(uint32_t kind, uint32_t id, struct iovec *body, int count) {
  unsigned char head[12];
  size_t length = 8;
  for (int i = 0; i < count; i++) length += body[i].iov_len;
  put32(head, (uint32_t)length);
  put32(head + 4, kind);
  put32(head + 8, id);
  struct iovec parts[10] = {{head, sizeof head}};
  memcpy(parts + 1, body, sizeof *body * (size_t)count);
  pthread_mutex_lock(&writing);
  send_parts(parts, count + 1);
  pthread_mutex_unlock(&writing);
}

void channel_ready(uint32_t facts) {
  unsigned char body[4];
  put32(body, facts);
  send_frame(TOLD_READY, 0, &(struct iovec){body, sizeof body}, 1);
}

static void tell_error(uint32_t kind, uint32_t id, int error) {
  unsigned char body[4];
  put32(body, (uint32_t)error);
  send_frame(kind, id, &(struct iovec){body, sizeof body}, 1);
}

void channel_widened(uint32_t id, int error) { tell_error(TOLD_WIDENED, id, error); }
void channel_narrowed(uint32_t id, int error) { tell_error(TOLD_NARROWED, id, error); }

/* An event's bytes but for its path. */
struct event {
  unsigned char numbers[20];
  char program[16];
};

static int event_parts(struct event *event, struct iovec parts[3], const struct call *call, uint32_t verdict, uint32_t what, int error, uint32_t rule, const char *path) {
  const uint32_t numbers[] = {verdict, what, (uint32_t)error, rule, (uint32_t)call->pid};
  for (size_t i = 0; i < 5; i++) put32(event->numbers + 4 * i, numbers[i]);
  caller_name(call, event->program);
  parts[0] = (struct iovec){event->numbers, sizeof event->numbers};
  parts[1] = (struct iovec){(void *)(uintptr_t)path, strlen(path) + 1};
  parts[2] = (struct iovec){event->program, strlen(event->program) + 1};
  return 3;
}

/* Whether one more may be told this second; what was not is told by its number. */
static bool may_tell(void) {
  static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
  static int64_t second;
  static uint32_t told, dropped;
  uint32_t before = 0;
  pthread_mutex_lock(&counting);
  const int64_t now = now_ns() / 1000000000;
  if (now != second) {
    second = now;
    told = 0;
    before = dropped;
    dropped = 0;
  }
  const bool may = told < EVENTS_A_SECOND;
  if (may) told++;
  else dropped++;
  pthread_mutex_unlock(&counting);
  if (before > 0) {
    unsigned char body[4];
    put32(body, before);
    send_frame(TOLD_DROPPED, 0, &(struct iovec){body, sizeof body}, 1);
  }
  return may;
}

void channel_event(const struct call *call, enum event_verdict verdict, enum rule_call what, int error, uint32_t rule, const char *path) {
  struct event event;
  struct iovec parts[3];
  if (!may_tell()) return;
  send_frame(TOLD_EVENT, 0, parts, event_parts(&event, parts, call, verdict, what, error, rule, path));
}

void channel_learned(const struct call *call, uint32_t what, int error, const char *real, const char *said) {
  unsigned char numbers[12];
  char program[16];
  const uint32_t values[] = {what, (uint32_t)error, (uint32_t)call->pid};
  for (size_t i = 0; i < 3; i++) put32(numbers + 4 * i, values[i]);
  caller_name(call, program);
  struct iovec parts[] = {{numbers, sizeof numbers}, {(void *)(uintptr_t)real, strlen(real) + 1}, {(void *)(uintptr_t)said, strlen(said) + 1}, {program, strlen(program) + 1}};
  send_frame(TOLD_LEARNED, 0, parts, 4);
}

void channel_connected(const struct asker *asker, const struct end *from) {
  unsigned char numbers[20], line[ASKER_LINE_MAX * 12];
  const uint32_t values[] = {from->address, from->port, asker->to.address, asker->to.port, (uint32_t)asker->count};
  for (size_t i = 0; i < 5; i++) put32(numbers + 4 * i, values[i]);
  for (size_t i = 0; i < asker->count; i++) {
    put32(line + 12 * i, (uint32_t)asker->line[i].pid);
    put32(line + 12 * i + 4, (uint32_t)asker->line[i].start);
    put32(line + 12 * i + 8, (uint32_t)(asker->line[i].start >> 32));
  }
  struct iovec parts[] = {{numbers, sizeof numbers}, {line, asker->count * 12}, {(void *)(uintptr_t)asker->program, strlen(asker->program) + 1}};
  send_frame(TOLD_CONNECTED, 0, parts, 3);
}

int channel_ask(const struct call *call, const struct question *question, unsigned char **given, size_t *given_length) {
  struct event event;
  struct iovec parts[7];
  unsigned char before[8], after[4];
  int count = event_parts(&event, parts, call, 0, question->what, 0, question->rule, question->path);
  put32(before, question->is_there ? 1 : 0);
  put32(before + 4, (uint32_t)question->before_length);
  put32(after, (uint32_t)question->after_length);
  parts[count++] = (struct iovec){before, sizeof before};
  parts[count++] = (struct iovec){(void *)(uintptr_t)question->before, question->before_length};
  parts[count++] = (struct iovec){after, sizeof after};
  parts[count++] = (struct iovec){(void *)(uintptr_t)question->after, question->after_length};

  pthread_mutex_lock(&asking);
  struct waiting own = {.next = all_waiting, .id = ++last_id};
  all_waiting = &own;
  pthread_mutex_unlock(&asking);
  send_frame(TOLD_ASK, own.id, parts, count);
  pthread_mutex_lock(&asking);
  while (!own.is_answered) pthread_cond_wait(&answered, &asking);
  struct waiting **at = &all_waiting;
  while (*at != &own) at = &(*at)->next;
  *at = own.next;
  pthread_mutex_unlock(&asking);
  *given = own.given;
  *given_length = own.length;
  return own.error;
}

static bool take(const struct answer *answer) {
  unsigned char *bytes = NULL;
  if (answer->is_given) {
    bytes = malloc(answer->length + 1);
    if (bytes == NULL) return false;
    memcpy(bytes, answer->bytes, answer->length);
  }
  bool found = false;
  pthread_mutex_lock(&asking);
  for (struct waiting *w = all_waiting; w != NULL && !found; w = w->next) {
    if (w->id != answer->id || w->is_answered) continue;
    found = w->is_answered = true;
    w->error = answer->error;
    w->given = bytes;
    w->length = answer->length;
  }
  pthread_cond_broadcast(&answered);
  pthread_mutex_unlock(&asking);
  if (!found) free(bytes);
  return found;
}

static bool take_frame(const unsigned char *bytes, size_t length) {
  union frame_content content;
  switch (frame_read(bytes, length, &content)) {
    case FRAME_ANSWER: return take(&content.answer);
    case FRAME_WIDEN: return grants_widen(&content.widening);
    case FRAME_NARROW: return grants_narrow(content.narrowed);
    default: return false;
  }
}

bool channel_read(void) {
  static unsigned char *frame;
  static size_t have, want;
  static unsigned char head[4];
  for (;;) {
    const bool in_head = frame == NULL;
    unsigned char *to = in_head ? head + have : frame + have;
    const size_t room = in_head ? sizeof head - have : want - have;
    const ssize_t n = recv(OBSERVE_CHANNEL, to, room, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    have += (size_t)n;
    if (in_head && have == sizeof head) {
      want = frame_length(head);
      have = 0;
      if (want == 0 || (frame = malloc(want)) == NULL) return false;
    } else if (!in_head && have == want) {
      const bool ok = take_frame(frame, want);
      free(frame);
      frame = NULL;
      have = 0;
      if (!ok) return false;
    }
  }
}
