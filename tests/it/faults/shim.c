// Fails, kills or tears at the Nth operation that changes files below a folder.
//
// Preloaded into the command by `faults.rs`, and told what to do by FAULT_ROOT (the
// folder), FAULT_AT (N, 0 for never), FAULT_MODE (fail, kill, torn) and FAULT_COUNT (a file
// that is told how many operations there were).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static const char *root, *mode, *count_file;
static long at;
static atomic_long count;

__attribute__((constructor)) static void begin(void) {
    root = getenv("FAULT_ROOT");
    mode = getenv("FAULT_MODE");
    count_file = getenv("FAULT_COUNT");
    at = getenv("FAULT_AT") ? atol(getenv("FAULT_AT")) : 0;
}

__attribute__((destructor)) static void end(void) {
    if (count_file) {
        FILE *file = fopen(count_file, "w");
        if (file) {
            fprintf(file, "%ld", (long)count);
            fclose(file);
        }
    }
}

static int is_watched(const char *path) {
    return root && path && strncmp(path, root, strlen(root)) == 0;
}

static int is_watched_fd(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_watched(path);
}

// Whether this operation is to fail; does not return if the process is to die here.
static int fails(void) {
    if (atomic_fetch_add(&count, 1) + 1 != at) return 0;
    if (mode && strcmp(mode, "fail") == 0) {
        errno = ENOSPC;
        return 1;
    }
    raise(SIGKILL);
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int changes(int flags) { return flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR); }

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t bits = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (changes(flags) && is_watched(path) && fails()) return -1;
    return REAL(open64)(path, flags, bits);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t bits = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (changes(flags) && is_watched(path) && fails()) return -1;
    return REAL(open)(path, flags, bits);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    if (!is_watched_fd(fd)) return REAL(write)(fd, bytes, length);
    int torn = mode && strcmp(mode, "torn") == 0 && (long)count + 1 == at;
    if (torn) REAL(write)(fd, bytes, length / 2);
    if (fails()) return -1;
    return REAL(write)(fd, bytes, length);
}

int fsync(int fd) {
    if (is_watched_fd(fd) && fails()) return -1;
    return REAL(fsync)(fd);
}

int rename(const char *from, const char *to) {
    if (is_watched(to) && fails()) return -1;
    return REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t bits) {
    if (is_watched(path) && fails()) return -1;
    return REAL(mkdir)(path, bits);
}

int unlink(const char *path) {
    if (is_watched(path) && fails()) return -1;
    return REAL(unlink)(path);
}
