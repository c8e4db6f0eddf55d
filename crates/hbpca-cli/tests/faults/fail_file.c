/* Loaded before the C library: the n-th call on a file below a folder fails with an error of the disk.
 *
 * HBPCA_FAIL_FILE is n, from 1; HBPCA_FAIL_BELOW the folder. When a call fails, "injected fault" is written to standard error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;

static int is_below(const char *path) {
    const char *folder = getenv("HBPCA_FAIL_BELOW");
    return folder && strncmp(path, folder, strlen(folder)) == 0;
}

/* Relative names are below the folder, in which the program runs. */
static int is_named_below(const char *path) { return path[0] != '/' || is_below(path); }

static int is_open_below(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

static int fails(int is_ours) {
    if (!is_ours) return 0;
    const char *text = getenv("HBPCA_FAIL_FILE");
    long n = text ? atol(text) : 0;
    if (n == 0 || atomic_fetch_add(&calls, 1) + 1 != n) return 0;
    static ssize_t (*next_write)(int, const void *, size_t);
    if (!next_write) next_write = dlsym(RTLD_NEXT, "write");
    next_write(2, "injected fault\n", 15);
    errno = EIO;
    return 1;
}

#define FORWARD(type, name, ours, parameters, arguments)          \
    type name parameters {                                        \
        static type(*next) parameters;                            \
        if (!next) next = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
        if (fails(ours)) return -1;                               \
        return next arguments;                                    \
    }

FORWARD(ssize_t, read, is_open_below(fd), (int fd, void *to, size_t n), (fd, to, n))
FORWARD(ssize_t, write, is_open_below(fd), (int fd, const void *from, size_t n), (fd, from, n))
FORWARD(ssize_t, writev, is_open_below(fd), (int fd, const struct iovec *from, int n), (fd, from, n))
FORWARD(ssize_t, pread64, is_open_below(fd), (int fd, void *to, size_t n, off64_t at), (fd, to, n, at))
FORWARD(ssize_t, pwrite64, is_open_below(fd), (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at))
FORWARD(off64_t, lseek64, is_open_below(fd), (int fd, off64_t at, int whence), (fd, at, whence))
FORWARD(int, fsync, is_open_below(fd), (int fd), (fd))
FORWARD(int, rename, is_named_below(from), (const char *from, const char *to), (from, to))
FORWARD(int, mkdir, is_named_below(path), (const char *path, mode_t mode), (path, mode))

int open64(const char *path, int flags, ...) {
    static int (*next)(const char *, int, ...);
    if (!next) next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (fails(is_named_below(path))) return -1;
    return next(path, flags, mode);
}
