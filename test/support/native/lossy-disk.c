/*
 * A file system in memory that loses what was not synced when the power goes. A file's bytes and size are kept by fsync and fdatasync of that
 * file, which keeps its name and those of the folders above it too, as ext4, XFS and Btrfs do and PostgreSQL takes for granted; other names, those
 * that were removed among them, by fsync of their folder. With `strict` as its first argument names are kept by fsync of their folder alone: the
 * least that POSIX lets a disk do. mkdir of `.power-cut-<seed>` in its root cuts the power: with seed 0 all that was not kept is gone, with
 * another one each page, and each folder unless it is strict, may have been written or not, by that seed.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };
static const char CUT[] = ".power-cut-";

struct bytes { char *at; size_t size, room; };
struct entry { struct entry *next; struct node *node; char name[]; };
struct node {
  struct stat stat;
  struct bytes live, kept;
  size_t dirty_from, dirty_to;
  struct entry *names, *kept_names;
  struct node *older;
  char *target;
  int named;
};
static struct node root = {.named = 1}, *newest = &root;
static int strict;

static struct node *node_of(fuse_ino_t ino) { return ino == FUSE_ROOT_ID ? &root : (struct node *)ino; }
static fuse_ino_t ino_of(struct node *n) { return n == &root ? FUSE_ROOT_ID : (fuse_ino_t)n; }

static void grow(struct bytes *b, size_t size) {
  if (size > b->room) {
    size_t room = b->room ? b->room : PAGE;
    while (room < size) room *= 2;
    b->at = realloc(b->at, room);
    if (!b->at) abort();
    memset(b->at + b->room, 0, room - b->room);
    b->room = room;
  }
}

/* Beyond the size there are always zeros. */
static void resize(struct bytes *b, size_t size) {
  grow(b, size);
  if (size < b->size) memset(b->at + size, 0, b->size - size);
  b->size = size;
}

static void dirty(struct node *n, size_t from, size_t to) {
  if (n->dirty_from == n->dirty_to) n->dirty_from = from, n->dirty_to = to;
  if (from < n->dirty_from) n->dirty_from = from;
  if (to > n->dirty_to) n->dirty_to = to;
}

static void set_size(struct node *n, size_t size) {
  if (size < n->live.size) dirty(n, size, n->live.size);
  resize(&n->live, size);
}

static void keep_bytes(struct node *n) {
  size_t to = n->dirty_to < n->live.size ? n->dirty_to : n->live.size;
  resize(&n->kept, n->live.size);
  if (n->dirty_from < to) memcpy(n->kept.at + n->dirty_from, n->live.at + n->dirty_from, to - n->dirty_from);
  n->dirty_from = n->dirty_to = 0;
}

static struct entry **place_of(struct entry **list, const char *name) {
  while (*list && strcmp((*list)->name, name)) list = &(*list)->next;
  return list;
}

static void put(struct entry **list, const char *name, struct node *node) {
  struct entry **at = place_of(list, name);
  if (*at) { (*at)->node = node; return; }
  struct entry *e = malloc(sizeof *e + strlen(name) + 1);
  if (!e) abort();
  e->next = NULL, e->node = node, strcpy(e->name, name);
  *at = e;
}

static void take(struct entry **at) {
  struct entry *e = *at;
  *at = e->next;
  free(e);
}

static void copy_names(struct entry **into, struct entry *from) {
  while (*into) take(into);
  struct entry **end = into;
  for (; from; from = from->next, end = &(*end)->next) put(end, from->name, from->node);
}

/* Its names as they are, instead of those it had, and the way to them. */
static void keep_names(struct node *n) {
  if (n->named) return;
  n->named = 1;
  for (struct node *folder = newest; folder; folder = folder->older) {
    for (struct entry **at = &folder->kept_names; *at;) {
      if ((*at)->node == n) take(at);
      else at = &(*at)->next;
    }
    for (struct entry *e = folder->names; e; e = e->next) {
      if (e->node != n) continue;
      put(&folder->kept_names, e->name, n);
      keep_names(folder);
    }
  }
}

static unsigned long long chance;
static int heads(void) {
  if (chance == 0) return 0;
  chance = chance * 6364136223846793005ULL + 1442695040888963407ULL;
  return (chance >> 62) == 0;
}

static void cut_power(unsigned long long seed) {
  chance = seed;
  for (struct node *n = newest; n; n = n->older) {
    if (!strict && heads()) copy_names(&n->kept_names, n->names);
    copy_names(&n->names, n->kept_names);
    size_t lost_size = n->live.size, most = lost_size > n->kept.size ? lost_size : n->kept.size;
    if (heads()) resize(&n->kept, lost_size);
    grow(&n->live, most), grow(&n->kept, most);
    for (size_t at = 0; at < n->kept.size; at += PAGE) {
      size_t size = n->kept.size - at < PAGE ? n->kept.size - at : PAGE;
      if (at < lost_size && heads()) memcpy(n->kept.at + at, n->live.at + at, size);
    }
    resize(&n->live, n->kept.size);
    if (n->kept.size) memcpy(n->live.at, n->kept.at, n->kept.size);
    n->dirty_from = n->dirty_to = 0;
  }
}

static struct node *new_node(fuse_req_t req, mode_t mode) {
  struct node *n = calloc(1, sizeof *n);
  if (!n) abort();
  n->stat.st_mode = mode, n->stat.st_nlink = S_ISDIR(mode) ? 2 : 1;
  n->stat.st_uid = fuse_req_ctx(req)->uid, n->stat.st_gid = fuse_req_ctx(req)->gid;
  clock_gettime(CLOCK_REALTIME, &n->stat.st_mtim);
  n->stat.st_ctim = n->stat.st_atim = n->stat.st_mtim;
  n->older = newest, newest = n;
  return n;
}

static struct stat stat_of(struct node *n) {
  struct stat s = n->stat;
  s.st_ino = (ino_t)n, s.st_size = n->target ? strlen(n->target) : n->live.size;
  s.st_blksize = PAGE, s.st_blocks = (s.st_size + 511) / 512;
  return s;
}

/* Nothing is remembered by the kernel: after a cut it would remember wrongly. */
static struct fuse_entry_param found(struct node *n) {
  return (struct fuse_entry_param){.ino = ino_of(n), .attr = stat_of(n)};
}
static void reply_entry(fuse_req_t req, struct node *n) {
  struct fuse_entry_param e = found(n);
  fuse_reply_entry(req, &e);
}
static void reply_attr(fuse_req_t req, struct node *n) {
  struct stat s = stat_of(n);
  fuse_reply_attr(req, &s, 0);
}

static void do_init(void *data, struct fuse_conn_info *conn) { (void)data, conn->max_write = 1 << 20; }
static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
  struct entry *e = *place_of(&node_of(parent)->names, name);
  if (e) reply_entry(req, e->node);
  else fuse_reply_err(req, ENOENT);
}
static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) { (void)fi, reply_attr(req, node_of(ino)); }
static void do_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *to, int what, struct fuse_file_info *fi) {
  struct node *n = node_of(ino);
  (void)fi;
  if (what & FUSE_SET_ATTR_MODE) n->stat.st_mode = (n->stat.st_mode & S_IFMT) | (to->st_mode & 07777);
  if (what & FUSE_SET_ATTR_UID) n->stat.st_uid = to->st_uid;
  if (what & FUSE_SET_ATTR_GID) n->stat.st_gid = to->st_gid;
  if (what & FUSE_SET_ATTR_SIZE) set_size(n, to->st_size);
  if (what & FUSE_SET_ATTR_MTIME) n->stat.st_mtim = to->st_mtim;
  if (what & FUSE_SET_ATTR_MTIME_NOW) clock_gettime(CLOCK_REALTIME, &n->stat.st_mtim);
  reply_attr(req, n);
}
static void do_readlink(fuse_req_t req, fuse_ino_t ino) { fuse_reply_readlink(req, node_of(ino)->target); }
static void add(fuse_req_t req, fuse_ino_t parent, const char *name, struct node *n) {
  put(&node_of(parent)->names, name, n);
  reply_entry(req, n);
}
static void do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode) {
  if (parent == FUSE_ROOT_ID && !strncmp(name, CUT, sizeof CUT - 1)) {
    cut_power(strtoull(name + sizeof CUT - 1, NULL, 10));
    fuse_reply_err(req, ECANCELED);
  } else add(req, parent, name, new_node(req, S_IFDIR | mode));
}
static void do_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name) {
  struct node *n = new_node(req, S_IFLNK | 0777);
  n->target = strdup(target);
  add(req, parent, name, n);
}
static void do_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name) {
  node_of(ino)->stat.st_nlink++, node_of(ino)->named = 0;
  add(req, parent, name, node_of(ino));
}
static void do_unlink(fuse_req_t req, fuse_ino_t parent, const char *name) {
  struct entry **at = place_of(&node_of(parent)->names, name);
  if (!*at) { fuse_reply_err(req, ENOENT); return; }
  if ((*at)->node->names) { fuse_reply_err(req, ENOTEMPTY); return; }
  if ((*at)->node->stat.st_nlink) (*at)->node->stat.st_nlink--;
  take(at);
  fuse_reply_err(req, 0);
}
static void do_rename(fuse_req_t req, fuse_ino_t from, const char *name, fuse_ino_t to, const char *new_name, unsigned flags) {
  struct entry **at = place_of(&node_of(from)->names, name), *there = *place_of(&node_of(to)->names, new_name);
  if (!*at) { fuse_reply_err(req, ENOENT); return; }
  if (flags) { fuse_reply_err(req, EINVAL); return; }
  struct node *n = (*at)->node;
  if (there && there->node->names) { fuse_reply_err(req, ENOTEMPTY); return; }
  take(at);
  put(&node_of(to)->names, new_name, n);
  n->named = 0;
  fuse_reply_err(req, 0);
}
static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) { (void)ino, fuse_reply_open(req, fi); }
static void do_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi) {
  struct node *n = new_node(req, S_IFREG | (mode & 07777));
  put(&node_of(parent)->names, name, n);
  struct fuse_entry_param e = found(n);
  fuse_reply_create(req, &e, fi);
}
static void do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi) {
  struct bytes *b = &node_of(ino)->live;
  (void)fi;
  size_t left = (size_t)off < b->size ? b->size - off : 0;
  fuse_reply_buf(req, left ? b->at + off : NULL, left < size ? left : size);
}
static void do_write(fuse_req_t req, fuse_ino_t ino, const char *from, size_t size, off_t off, struct fuse_file_info *fi) {
  struct node *n = node_of(ino);
  (void)fi;
  if (off + size > n->live.size) set_size(n, off + size);
  memcpy(n->live.at + off, from, size);
  dirty(n, off, off + size);
  clock_gettime(CLOCK_REALTIME, &n->stat.st_mtim);
  fuse_reply_write(req, size);
}
static void do_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t size, struct fuse_file_info *fi) {
  struct node *n = node_of(ino);
  (void)fi;
  if (mode == 0 && (size_t)(off + size) > n->live.size) set_size(n, off + size);
  fuse_reply_err(req, mode ? EOPNOTSUPP : 0);
}
static void do_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi) {
  (void)datasync, (void)fi;
  keep_bytes(node_of(ino));
  if (!strict) keep_names(node_of(ino));
  fuse_reply_err(req, 0);
}
static void do_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi) {
  struct node *n = node_of(ino);
  (void)datasync, (void)fi;
  copy_names(&n->kept_names, n->names);
  if (!strict) keep_names(n);
  fuse_reply_err(req, 0);
}
/* What is listed is fixed when the folder is opened, so that a reader who removes what it reads misses nothing. */
static void do_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
  struct entry *list = NULL;
  copy_names(&list, node_of(ino)->names);
  fi->fh = (uint64_t)list;
  fuse_reply_open(req, fi);
}
static void do_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi) {
  char *buffer = malloc(size);
  size_t used = 0;
  off_t at = 0;
  (void)ino;
  for (struct entry *e = (struct entry *)fi->fh; e; e = e->next) {
    if (at++ < off) continue;
    struct stat s = stat_of(e->node);
    size_t needs = fuse_add_direntry(req, buffer + used, size - used, e->name, &s, at);
    if (needs > size - used) break;
    used += needs;
  }
  fuse_reply_buf(req, buffer, used);
  free(buffer);
}
static void do_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
  struct entry *list = (struct entry *)fi->fh;
  (void)ino;
  while (list) take(&list);
  fuse_reply_err(req, 0);
}
static void do_statfs(fuse_req_t req, fuse_ino_t ino) {
  struct statvfs s = {.f_bsize = PAGE, .f_frsize = PAGE, .f_blocks = 1 << 20, .f_bfree = 1 << 19, .f_bavail = 1 << 19, .f_namemax = 255};
  (void)ino;
  fuse_reply_statfs(req, &s);
}

static const struct fuse_lowlevel_ops OPS = {
  .init = do_init, .lookup = do_lookup, .getattr = do_getattr, .setattr = do_setattr, .readlink = do_readlink, .mkdir = do_mkdir,
  .symlink = do_symlink, .link = do_link, .unlink = do_unlink, .rmdir = do_unlink, .rename = do_rename, .open = do_open, .create = do_create,
  .read = do_read, .write = do_write, .fallocate = do_fallocate, .fsync = do_fsync, .fsyncdir = do_fsyncdir, .opendir = do_opendir,
  .readdir = do_readdir, .releasedir = do_releasedir, .statfs = do_statfs,
};

int main(int count, char **args) {
  strict = count > 2 && !strcmp(args[1], "strict");
  if (strict) args[1] = args[0], args++, count--;
  struct fuse_args given = FUSE_ARGS_INIT(count - 1, args);
  root.stat.st_mode = S_IFDIR | 0755, root.stat.st_nlink = 2;
  root.stat.st_uid = getuid(), root.stat.st_gid = getgid();
  struct fuse_session *session = fuse_session_new(&given, &OPS, sizeof OPS, NULL);
  if (!session || fuse_set_signal_handlers(session) || fuse_session_mount(session, args[count - 1])) return 1;
  int ended = fuse_session_loop(session);
  fuse_session_unmount(session);
  return ended ? 1 : 0;
}
