/* nd7-shim: the hook command. It stands between an agent and the resident recorder, costs about a millisecond, and never loses a payload silently. */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reading may take so long in all, however steadily bytes trickle in. */
#define READ_MS 60000

struct payload {
  char *bytes;
  size_t length;
};

/* Reads one JSON value from stdin. Returns why it stopped reading. */
static const char *take(struct payload *payload, int idle_ms) {
  struct json_end scan = {0};
  size_t room = (size_t)64 << 10;
  const int64_t limit = now_ms() + READ_MS;
  payload->bytes = malloc(room);
  while (payload->bytes != NULL) {
    if (payload->length == room) {
      if (room >= MAX_PAYLOAD) return "limit";
      char *more = realloc(payload->bytes, room *= 2);
      if (more == NULL) return "limit";
      payload->bytes = more;
    }
    const int64_t idle = now_ms() + idle_ms;
    if (!wait_for(STDIN_FILENO, POLLIN, idle < limit ? idle : limit)) return "idle";
    const ssize_t n = read(STDIN_FILENO, payload->bytes + payload->length, room - payload->length);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return "eof";
    const size_t end = json_end_feed(&scan, payload->bytes + payload->length, (size_t)n);
    payload->length += (size_t)n;
    if (end > 0) return "complete";
  }
  return "limit";
}

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool is_producer(const char *name) {
  const size_t length = strlen(name);
  if (length < 1 || length > 64 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != length) return false;
  return name[0] != '.' && name[0] != '-';
}

static int usage(void) {
  static const char text[] = "usage: nd7-shim [--home DIR] --agent NAME   (a hook command: one JSON payload on stdin)\n";
  write_all(STDERR_FILENO, text, sizeof text - 1, now_ms() + 1000);
  return 1;
}

int main(int argc, char **argv) {
  if (is_ask(argv[0])) return ask(argc, argv);
  if (is_box(argv[0])) return box_main(argc, argv);
  if (argc > 0 && is_shell(argv[0])) return exec_main(argc, argv);
  sigset_t wait;
  sigemptyset(&wait);
  sigaddset(&wait, SIGTERM);
  sigaddset(&wait, SIGINT);
  sigaddset(&wait, SIGHUP);
  sigprocmask(SIG_BLOCK, &wait, NULL);
  signal(SIGPIPE, SIG_IGN);

  struct conf conf = {.idle_ms = 10000, .start_ms = 3000, .answer_ms = 10000, .node_ms = 20000};
  struct request request = {0};
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--home") == 0 && i + 1 < argc) request.home = argv[++i];
    else if (strcmp(argv[i], "--agent") == 0 && i + 1 < argc) request.agent = argv[++i];
    else return usage();
  }
  char home[PATH_MAX];
  if (request.home == NULL && default_home(home, sizeof home)) request.home = home;
  if (request.home == NULL || request.home[0] != '/' || request.agent == NULL || !is_producer(request.agent)) return usage();

  conf_read(request.home, &conf);
  struct payload payload = {0};
  request.took = take(&payload, conf.idle_ms);
  /* White space after the value says nothing and comes or not by chance. */
  while (payload.length > 0 && blank(payload.bytes[payload.length - 1])) payload.length--;
  request.payload = payload.bytes != NULL ? payload.bytes : "";
  request.length = payload.length;

  const char *bad = untrusted(request.home);
  if (bad != NULL) {
    char line[2 * PATH_MAX + 16];
    const int n = snprintf(line, sizeof line, "nd7: %s\n", bad);
    if (n > 0) write_all(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1, now_ms() + 1000);
    /* 1 is an error that agents show and go on after. */
    const int refused = give_up(&request, &conf, "others can change its files");
    return refused == 0 ? 1 : refused;
  }

  struct answer answer;
  const enum exchanged exchanged = ask_recorder(&request, &conf, &answer);
  if (exchanged == ANSWERED) {
    const int64_t deadline = now_ms() + conf.answer_ms;
    write_all(STDOUT_FILENO, answer.out, answer.out_length, deadline);
    write_all(STDERR_FILENO, answer.err, answer.err_length, deadline);
    return answer.exit_code;
  }
  const int code = run_node_hook(&request, &conf, exchanged == NO_RECORDER ? "no-recorder" : "no-answer");
  if (code >= 0) return code;
  return give_up(&request, &conf, exchanged == NO_RECORDER ? "no recorder could be reached or started" : "the recorder did not answer");
}
