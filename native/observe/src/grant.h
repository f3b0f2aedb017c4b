/* Grants, as those know them that carry them out: all but what is said otherwise is of the one thread that changes them. */
#ifndef ND7_GRANT_H
#define ND7_GRANT_H

#include "observe.h"

#define GRANTS_MAX NAMES_HELD

struct skeleton;
struct grant {
  uint32_t id;
  enum grant_what what;
  bool below;
  uint32_t parts; /* components of the path */
  size_t length;
  char *path;
  int watch;  /* of the folder that it lies in, -1: none */
  int source; /* O_PATH of what lay outside at the time; -1: nothing did */
  /* What the session sees of it (grant-show.c). */
  int tree;                  /* what is mounted for it, -1: nothing had to be */
  struct skeleton *skeleton; /* what it lies in, where that was made for grants */
  int ground;                /* a folder of the session's own memory in which names were made to mount upon, -1: none were */
  size_t ground_at;          /* where the path goes on from there */
  size_t made;               /* so many components, from its end, were made */
  bool is_masked;            /* the mask lies below it, and is to lie there when the grant has ended */
};

/* --- grant.c ------------------------------------------------------------------------------------------------------- */

/* From now on it holds, and is the table's. 0 or an errno: then it is the caller's still. */
int grant_widen(struct grant *grant);
int grant_narrow(uint32_t id);
/* Shows what lies at the path of a file now, or nothing where nothing of its kind does. */
void grant_refresh(uint32_t id);
void grant_free(struct grant *grant);

/* --- grant-orders.c ------------------------------------------------------------------------------------------------ */

/* Has a grant refreshed; any thread may ask. */
void order_refresh(uint32_t id);

/* --- grant.c; called by the thread that watches --------------------------------------------------------------------- */

/* A name in a watched folder is another thing now, or has gone; NULL: any of them. */
void grants_moved(int watch, const char *name);

/* --- grant-watch.c ------------------------------------------------------------------------------------------------- */

/* Watches the folder of a file; `grant->watch` is its number, which others may share. */
void watch_add(struct grant *grant);
/* Nobody has this number any more. */
void watch_remove(int watch);

/* --- outside.c; each may be asked by any thread --------------------------------------------------------------------- */

/* The root folder as O_PATH, which stays; -errno where the kernel gives none. */
int outside_root(void);
/* A place below a folder that is taken, over which an empty file or folder is to lie that nobody may read. */
struct outside_cover {
  char *path; /* relative */
  bool is_folder;
};
/* A detached copy of what lies at `source` (O_PATH, of outside_root), with what is mounted below it and with covers laid: a descriptor or -errno. */
int outside_take(int source, bool is_writable, const struct outside_cover *covers, size_t count);
/* An empty file system in memory that is nowhere mounted; -1 with errno. Needs RIGHT_MOUNT. */
int memory_mount(uint64_t attributes);

/* --- grant-show.c ------------------------------------------------------------------------------------------------- */

/* What lies at an absolute path as a root has it, through no link, as O_PATH; -1 with errno. */
int object_at(int root, const char *path, size_t length);
bool same_object(int a, int b);
/* Opens what lies at the path outside. 0 or an errno. */
int grant_find(struct grant *grant);
/* Lets the session see it; 0 or an errno. */
int grant_show(struct grant *grant);
void grant_hide(struct grant *grant);
/* Both need RIGHT_MOUNT; `tree` is closed by the second. */
int tree_mount(int tree, int place);
void tree_unmount(int tree);

/* --- grant-cover.c ------------------------------------------------------------------------------------------------ */

struct covers {
  struct outside_cover *all;
  size_t count;
};
/* What has to stay covered below a folder that is granted. 0 or an errno; `covers` is to be freed in both cases. */
int covers_find(const struct grant *grant, struct covers *covers);
void covers_free(struct covers *covers);

/* --- grant-ground.c ----------------------------------------------------------------------------------------------- */

/* Makes what the path lacks behind `grant->ground_at`, below `at`, a folder of the session's own memory, which is taken over; `*place` is what can be mounted
 * upon then. 0 or an errno; ground_leave takes away what was made. Both need RIGHT_MOUNT. */
int ground_make(struct grant *grant, int at, bool is_folder, int *place);
void ground_leave(struct grant *grant);
/* What is mounted upon a folder that was laid over a cover keeps it there. */
void ground_stand(struct grant *grant, dev_t device);

#endif
