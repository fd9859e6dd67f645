/* Opens the library named by the first argument and creates a handle on the host, as a program with rights that
   its caller has not would. Prints whether it is one, the status and the error. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/auxv.h>

int main(int argc, char **argv)
{
    void *const library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int (*create)(void **, int);
    const char *(*last_error)(void);
    void *handle = NULL;
    if (!library) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: secure_program LIBRARY");
        return 2;
    }
    *(void **)&create = dlsym(library, "hgemm_create_on");
    *(void **)&last_error = dlsym(library, "hgemm_last_error");
    if (!create || !last_error)
        return 2;
    printf("secure %lu status %d: ", getauxval(AT_SECURE), create(&handle, -1));
    printf("%s\n", last_error());
    return 0;
}
