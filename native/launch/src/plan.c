#include "launch.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum record {
  FLAGS = 1,
  LANDLOCK_MIN = 2,
  CWD = 3,
  ARGUMENT = 4,
  VARIABLE = 5,
  FILTER = 6,
  ASKING = 25,
  CANARY = 7,
  OUTSIDE = 8,
  RIGHTS = 9,
  LISTEN = 10,
  NAMES = 11,
  ROUTE = 13,
  TIER = 12,
  LANDLOCK_MOST = 15,
  BROKER = 24,
  PORTS = 30,
  WRITABLE = 16,
  SHOW = 17,
  COVER = 18,
  SCRATCH = 19,
};

/* BPF_MAXINSNS */
#define FILTER_MAX 4096u
#define MOUNTS_MAX 20000u
#define STRINGS_MAX 100000u

struct counts {
  size_t mounts, rules, arguments, variables, flags;
};

static uint32_t u32(const unsigned char *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24; }
static uint64_t u64(const unsigned char *at) { return (uint64_t)u32(at) | (uint64_t)u32(at + 4) << 32; }

size_t plan_size(const unsigned char *bytes) {
  if (memcmp(bytes, PLAN_MAGIC, 8) != 0 || u32(bytes + 8) != PLAN_VERSION) return 0;
  const size_t size = u32(bytes + 12);
  return size < PLAN_HEADER || size > PLAN_MAX ? 0 : size;
}

/* A string that ends by NUL at its end and nowhere before. */
static const char *text(const unsigned char *body, size_t length) {
  if (length == 0 || memchr(body, '\0', length) != body + length - 1) return NULL;
  return (const char *)body;
}

/* An absolute path without empty, "." and ".." parts. */
static const char *path(const unsigned char *body, size_t length) {
  const char *s = text(body, length);
  if (s == NULL || length > PATH_MAX || s[0] != '/') return NULL;
  if (s[1] == '\0') return s;
  for (const char *part = s; *part != '\0';) {
    const char *name = part + 1;
    const size_t n = strcspn(name, "/");
    if (n == 0 || n > NAME_MAX || (n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.')) return NULL;
    part = name + n;
  }
  return s;
}

static const char *take_mount(struct plan *plan, uint32_t type, const unsigned char *body, size_t length) {
  struct plan_mount *mount = &plan->mounts[plan->mount_count++];
  memset(mount, 0, sizeof *mount);
  static const enum plan_view views[] = {VIEW_WRITABLE, VIEW_SHOW, VIEW_COVER, VIEW_SCRATCH};
  mount->view = views[type - WRITABLE];
  if (length < 4) return "a record of the view is cut short";
  mount->attributes = u32(body);
  const uint32_t known = type == COVER ? ATTRIBUTE_CLOSED : type == SCRATCH ? ATTRIBUTE_NOEXEC | ATTRIBUTE_FROZEN : ATTRIBUTE_NOEXEC;
  if ((mount->attributes & ~known) != 0) return "an attribute of the view is unknown";
  body += 4;
  length -= 4;
  if (type == SCRATCH) {
    if (length < 8) return "a scratch record is cut short";
    mount->mode = u32(body);
    mount->mebibytes = u32(body + 4);
    if (mount->mode > 01777 || mount->mebibytes == 0 || mount->mebibytes > 1u << 20) return "a scratch has no such mode or size";
    body += 8;
    length -= 8;
  } else if (type == SHOW) {
    const unsigned char *end = memchr(body, '\0', length);
    if (end == NULL) return "a show record has no source";
    const size_t first = (size_t)(end - body) + 1;
    if ((mount->source = path(body, first)) == NULL) return "the source of a show record is no plain absolute path";
    body += first;
    length -= first;
  }
  mount->path = path(body, length);
  if (mount->path == NULL) return "a path of the view is no plain absolute path";
  if (mount->path[1] == '\0') return "the root itself cannot be a path of the view";
  return NULL;
}

static const char *set_once(const char **to, const char *value, const char *wrong) {
  if (*to != NULL || value == NULL) return wrong;
  *to = value;
  return NULL;
}

static const char *take(struct plan *plan, struct counts *seen, uint32_t type, const unsigned char *body, size_t length) {
  switch (type) {
    case FLAGS:
      if (length != 4 || seen->flags++ > 0) return "the flags are cut short or there twice";
      plan->flags = u32(body);
      return (plan->flags & ~PLAN_FLAGS) != 0 ? "a flag is unknown" : NULL;
    case LANDLOCK_MIN:
      if (length != 4 || plan->landlock_min != 0 || u32(body) == 0) return "the least Landlock version is cut short, zero or there twice";
      plan->landlock_min = u32(body);
      return NULL;
    case TIER:
      if (length != 4 || plan->tier != 0 || u32(body) < TIER_SPACES || u32(body) > TIER_ALONE) return "the tier is cut short, unknown or there twice";
      plan->tier = (enum plan_tier)u32(body);
      return NULL;
    case LANDLOCK_MOST:
      if (length != 4 || plan->landlock_most != 0 || u32(body) == 0) return "the newest Landlock version is cut short, zero or there twice";
      plan->landlock_most = u32(body);
      return NULL;
    case CWD: return set_once(&plan->cwd, path(body, length), "the working folder is no plain absolute path, or there twice");
    case CANARY: return set_once(&plan->canary, path(body, length), "the canary is no plain absolute path, or there twice");
    case OUTSIDE: return set_once(&plan->outside, path(body, length), "the outside folder is no plain absolute path, or there twice");
    case BROKER: return set_once(&plan->broker, path(body, length), "the folder of the broker is no plain absolute path, or there twice");
    case ARGUMENT:
      return (plan->argv[seen->arguments++] = (char *)(uintptr_t)text(body, length)) == NULL ? "an argument is no string" : NULL;
    case VARIABLE: {
      const char *s = text(body, length);
      if (s == NULL || s[0] == '=' || strchr(s, '=') == NULL) return "a variable is no NAME=value";
      plan->envp[seen->variables++] = (char *)(uintptr_t)s;
      return NULL;
    }
    case ASKING:
      if (plan->asking != NULL || length == 0 || length % 8 != 0 || length / 8 > FILTER_MAX) return "the filter of commands has no whole instructions, too many, or is there twice";
      plan->asking = body;
      plan->asking_count = length / 8;
      return NULL;
    case FILTER:
      if (plan->filter != NULL || length == 0 || length % 8 != 0 || length / 8 > FILTER_MAX) return "the filter has no whole instructions, too many, or is there twice";
      plan->filter = body;
      plan->filter_count = length / 8;
      return NULL;
    case RIGHTS: {
      struct plan_rule *rule = &plan->rules[plan->rule_count++];
      if (length < 9 || (rule->path = path(body + 8, length - 8)) == NULL) return "a rule names no plain absolute path";
      rule->rights = u64(body);
      return rule->rights == 0 ? "a rule grants nothing" : NULL;
    }
    case LISTEN:
      if (length != 12 || u32(body + 4) == 0 || u32(body + 4) > 65535 || u32(body + 8) > 1 || plan->listener_count == LISTENERS_MAX) return "a listener has no port, or there are too many";
      plan->listeners[plan->listener_count++] = (struct plan_listener){.address = u32(body), .port = (uint16_t)u32(body + 4), .datagrams = u32(body + 8) == 1};
      return NULL;
    case ROUTE:
      /* Nothing as wide as the default route: what is not named has no way anywhere. */
      if (length != 8 || u32(body + 4) < 8 || u32(body + 4) > 32 || plan->route_count == ROUTES_MAX) return "a route is cut short or too wide, or there are too many";
      plan->routes[plan->route_count++] = (struct plan_route){.address = u32(body), .prefix = (uint8_t)u32(body + 4)};
      return NULL;
    case PORTS: {
      if (length != 12 || plan->ports_count == PORTS_MAX) return "ports are cut short, or there are too many of them";
      const uint32_t first = u32(body), last = u32(body + 4), step = u32(body + 8);
      if (first == 0 || first > last || last > UINT16_MAX || step == 0 || step > UINT16_MAX) return "ports are none, or have no order";
      plan->ports[plan->ports_count++] = (struct plan_ports){.first = (uint16_t)first, .last = (uint16_t)last, .step = (uint16_t)step};
      return NULL;
    }
    case NAMES:
      if (plan->names != NULL || length == 0) return "the table of names is empty or there twice";
      plan->names = body;
      plan->names_length = length;
      return NULL;
    case WRITABLE:
    case SHOW:
    case COVER:
    case SCRATCH: return take_mount(plan, type, body, length);
    default: return "a record is unknown";
  }
}

/* Walks the records: the first time to count them, the second to take them. */
static const char *walk(const unsigned char *bytes, size_t length, struct counts *counts, struct plan *plan, struct counts *seen) {
  for (size_t at = PLAN_HEADER; at < length;) {
    if (length - at < 8) return "a record is cut short";
    const uint32_t type = u32(bytes + at);
    const size_t size = u32(bytes + at + 4);
    at += 8;
    if (size > length - at) return "a record is longer than the plan";
    if (counts != NULL) {
      if (type == ARGUMENT) counts->arguments++;
      if (type == VARIABLE) counts->variables++;
      if (type == RIGHTS) counts->rules++;
      if (type >= WRITABLE && type <= SCRATCH) counts->mounts++;
    } else {
      const char *wrong = take(plan, seen, type, bytes + at, size);
      if (wrong != NULL) return wrong;
    }
    at += size;
  }
  return NULL;
}

const char *plan_parse(unsigned char *bytes, size_t length, struct plan *plan) {
  memset(plan, 0, sizeof *plan);
  if (length < PLAN_HEADER || plan_size(bytes) != length) return "it is no plan of this version, or has another length than it says";
  struct counts counts = {0};
  const char *wrong = walk(bytes, length, &counts, NULL, NULL);
  if (wrong != NULL) return wrong;
  if (counts.mounts > MOUNTS_MAX || counts.rules > MOUNTS_MAX || counts.arguments > STRINGS_MAX || counts.variables > STRINGS_MAX) return "it has too many records";
  plan->mounts = calloc(counts.mounts + 1, sizeof *plan->mounts);
  plan->rules = calloc(counts.rules + 1, sizeof *plan->rules);
  plan->argv = calloc(counts.arguments + 1, sizeof *plan->argv);
  plan->envp = calloc(counts.variables + 1, sizeof *plan->envp);
  if (plan->mounts == NULL || plan->rules == NULL || plan->argv == NULL || plan->envp == NULL) return "there is no memory for it";
  struct counts seen = {0};
  wrong = walk(bytes, length, NULL, plan, &seen);
  if (wrong != NULL) return wrong;
  if (seen.flags == 0) return "it has no flags";
  if (plan->cwd == NULL) return "it has no working folder";
  if (seen.arguments == 0 || plan->argv[0][0] == '\0') return "it has no program";
  if (plan->filter == NULL) return "it has no filter";
  if (plan->landlock_min == 0) return "it does not say which Landlock it needs";
  if (plan->tier == 0) plan->tier = TIER_SPACES;
  if (plan->tier == TIER_BARE && plan->names == NULL) return "its tier has no boundary without a table of names";
  if (plan->tier == TIER_ALONE && plan->names != NULL) return "its tier has no supervisor";
  if (plan->tier == TIER_ALONE && plan->listener_count > 0) return "its tier has no network to listen in";
  if (plan->tier != TIER_ALONE && plan->ports_count > 0) return "it has ports in a tier that does not tell by them";
  if (plan->tier == TIER_ALONE && plan->broker != NULL) return "its tier has no broker";
  if (plan->tier != TIER_SPACES && (plan->flags & PLAN_CONNECT) != 0) return "its tier has no network to connect into";
  if (plan->asking != NULL && (plan->tier != TIER_BARE || plan->broker == NULL || (plan->flags & PLAN_READS) != 0)) return "it asks about what commands read where nothing comes of it";
  if (plan->tier != TIER_ALONE && (plan->flags & PLAN_TERMINALS) != 0) return "it has terminals asked about in a tier that has them asked about anyhow, or its own";
  if (plan->tier != TIER_BARE && (plan->flags & PLAN_READS) != 0) return "it asks about reads in a tier that hides by mounts";
  if ((plan->flags & PLAN_SELFTEST) != 0 && (plan->canary == NULL || plan->outside == NULL)) return "it wants a self-test without a canary or an outside folder";
  return NULL;
}
