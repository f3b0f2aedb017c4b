/* Random bytes, and plans that are nearly right, against the parser in a sanitized build: `fuzz SEED ROUNDS`. A plan lies in a heap block of its exact size,
 * so that reading one byte too far ends the program; a plan that is taken must be one. */
#include "launch.h"

#include "../../observe/test/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
  unsigned char bytes[8192];
  size_t length;
};

static void put(struct buffer *to, const void *bytes, size_t length) {
  if (to->length + length > sizeof to->bytes) return;
  memcpy(to->bytes + to->length, bytes, length);
  to->length += length;
}

static void put32(struct buffer *to, uint32_t value) {
  const unsigned char bytes[] = {(unsigned char)value, (unsigned char)(value >> 8), (unsigned char)(value >> 16), (unsigned char)(value >> 24)};
  put(to, bytes, 4);
}

static void record(struct buffer *to, uint32_t type, const void *body, size_t length) {
  put32(to, type);
  put32(to, (uint32_t)length);
  put(to, body, length);
}

static const char *some_path(void) {
  static const char *const paths[] = {"/", "/tmp", "/home/dev/a b", "/a/../b", "//", "/a/", "", "relative", "/a/./b", "/tmp/..", "/x/\xff\n"};
  return roll(4) == 0 ? paths[roll(sizeof paths / sizeof *paths)] : paths[1 + roll(2)];
}

/* Whether a path is one that the parser may let through. */
static bool plain(const char *path) {
  if (path == NULL || path[0] != '/') return false;
  return path[1] == '\0' || (strstr(path, "//") == NULL && strstr(path, "/./") == NULL && strstr(path, "/../") == NULL && path[strlen(path) - 1] != '/' &&
                             !(strlen(path) >= 2 && strcmp(path + strlen(path) - 2, "/.") == 0) && !(strlen(path) >= 3 && strcmp(path + strlen(path) - 3, "/..") == 0));
}

static void mount_record(struct buffer *plan) {
  struct buffer body = {.length = 0};
  const uint32_t type = 16 + roll(4);
  put32(&body, roll(6) == 0 ? roll(4) : 0);
  if (type == 19) {
    put32(&body, roll(1026));
    put32(&body, roll(1000));
  }
  for (uint32_t n = type == 17 ? 2 : 1; n > 0; n--) {
    const char *path = some_path();
    put(&body, path, strlen(path) + 1);
  }
  record(plan, type, body.bytes, body.length);
}

static void make(struct buffer *plan) {
  plan->length = 0;
  put(plan, PLAN_MAGIC, 8);
  put32(plan, PLAN_VERSION);
  put32(plan, 0);
  const unsigned char flags[] = {(unsigned char)roll(17), 0, 0, 0}, one[] = {1, 0, 0, 0};
  unsigned char filter[64] = {0};
  if (roll(20) > 0) record(plan, 1, flags, 4);
  if (roll(20) > 0) record(plan, 2, one, 4);
  if (roll(20) > 0) record(plan, 3, "/tmp", 5);
  if (roll(20) > 0) record(plan, 4, "sh", 3);
  for (uint32_t n = roll(3); n > 0; n--) {
    const unsigned char number[] = {(unsigned char)roll(4), (unsigned char)(roll(8) == 0), 0, 0};
    record(plan, roll(2) == 0 ? 12 : 15, number, roll(8) == 0 ? roll(5) : 4);
  }
  if (roll(20) > 0) record(plan, 6, filter, roll(8) == 0 ? roll(64) : 8 * (1 + roll(8)));
  for (uint32_t n = roll(12); n > 0; n--) {
    const char *path = some_path();
    unsigned char rule[64] = {(unsigned char)roll(3)};
    const unsigned char listener[] = {0, 0, 18, 198, (unsigned char)roll(256), (unsigned char)roll(256), (unsigned char)(roll(8) == 0), 0, (unsigned char)roll(3), 0, 0, 0};
    const unsigned char route[] = {0, 0, 18, 198, (unsigned char)roll(40), 0, 0, 0};
    switch (roll(10)) {
      case 9: record(plan, 24, path, strlen(path) + 1); break;
      case 8: record(plan, 13, route, roll(8) == 0 ? 7 : 8); break;
      case 7: record(plan, 11, path, roll(8) == 0 ? 0 : strlen(path) + 1); break;
      case 6: record(plan, 10, listener, roll(8) == 0 ? 11 : 12); break;
      case 0: record(plan, 4, "-c\0x", roll(5)); break;
      case 1: record(plan, 5, "A=b\0", roll(5)); break;
      case 2: record(plan, 7 + roll(2), path, strlen(path) + 1); break;
      case 3:
        memcpy(rule + 8, path, strlen(path) + 1);
        record(plan, 9, rule, 8 + strlen(path) + 1);
        break;
      default: mount_record(plan);
    }
  }
  const uint32_t size = (uint32_t)plan->length;
  const unsigned char bytes[] = {(unsigned char)size, (unsigned char)(size >> 8), 0, 0};
  memcpy(plan->bytes + 12, bytes, 4);
}

static void damage(struct buffer *plan) {
  for (uint32_t n = roll(4); n > 0; n--) plan->bytes[roll((uint32_t)plan->length)] = (unsigned char)roll(256);
  if (roll(4) == 0) plan->length = roll((uint32_t)plan->length + 1);
}

static void judge(const struct plan *plan) {
  check((plan->flags & ~PLAN_FLAGS) == 0, "an unknown flag was taken");
  check(plan->argv[0] != NULL && plan->argv[0][0] != '\0', "a plan without a program was taken");
  check(plan->filter != NULL && plan->filter_count > 0, "a plan without a filter was taken");
  check(plan->landlock_min > 0 && plain(plan->cwd), "a plan without Landlock or a folder was taken");
  for (size_t i = 0; i < plan->mount_count; i++) {
    const struct plan_mount *m = &plan->mounts[i];
    check(plain(m->path) && m->path[1] != '\0', "a path of the view");
    check(m->view != VIEW_SHOW || plain(m->source), "a source of the view");
    check(m->view != VIEW_SCRATCH || (m->mebibytes > 0 && m->mode <= 01777), "a scratch");
  }
  for (size_t i = 0; i < plan->rule_count; i++) check(plain(plan->rules[i].path) && plan->rules[i].rights != 0, "a rule");
  for (size_t i = 0; i < plan->listener_count; i++) check(plan->listeners[i].port != 0, "a port");
  for (size_t i = 0; i < plan->route_count; i++) check(plan->routes[i].prefix >= 8 && plan->routes[i].prefix <= 32, "a route");
  check(plan->tier >= TIER_SPACES && plan->tier <= TIER_ALONE && (plan->tier != TIER_BARE || plan->names != NULL), "a tier without what it rests on");
  check(plan->tier != TIER_ALONE || (plan->names == NULL && plan->broker == NULL && plan->listener_count == 0), "who could be asked in a tier without a supervisor");
  check(plan->ports_count == 0 || plan->tier == TIER_ALONE, "ports in a tier that does not tell by them");
  check(plan->asking == NULL || (plan->tier == TIER_BARE && plan->broker != NULL && (plan->flags & PLAN_READS) == 0), "a filter of commands where there are none");
  check((plan->flags & PLAN_READS) == 0 || plan->tier == TIER_BARE, "reads are asked about elsewhere");
  check(plan->names == NULL || plan->names_length > 0, "an empty table");
  check(plan->broker == NULL || plain(plan->broker), "a folder of the broker");
  check(plan->listener_count <= LISTENERS_MAX && plan->route_count <= ROUTES_MAX, "too many listeners or routes");
  for (size_t i = 0; plan->envp[i] != NULL; i++) check(strchr(plan->envp[i], '=') > plan->envp[i], "a variable");
}

int main(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1 : 1;
  const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 100000;
  long taken = 0;
  for (long i = 0; i < rounds; i++) {
    struct buffer made;
    make(&made);
    if (roll(3) == 0) damage(&made);
    unsigned char *bytes = malloc(made.length);
    if (bytes == NULL && made.length > 0) return 2;
    if (made.length > 0) memcpy(bytes, made.bytes, made.length);
    struct plan plan;
    if (plan_parse(bytes, made.length, &plan) == NULL) {
      judge(&plan);
      taken++;
    }
    free(plan.mounts);
    free(plan.rules);
    free(plan.argv);
    free(plan.envp);
    free(bytes);
  }
  check(rounds < 1000 || (taken > rounds / 50 && taken < rounds), "too few or too many plans were taken for the test to say anything");
  printf("%ld rounds, %ld plans\n", rounds, taken);
  return 0;
}
