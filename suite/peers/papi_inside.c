/* Loaded into a program (LD_PRELOAD): counts its software events through PAPI's own rotation,
 * from its first instruction to its last, and writes them to the file that PAPI_INSIDE_OUT names.
 *
 * PAPI's rotation by signals is asked for: its other one, by the kernel, first asks for a
 * hardware counter and refuses where there is none. When PAPI cannot count, the file says why and
 * the program runs on uncounted.
 */
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const NAMES[] = {
    "perf::CPU-CLOCK",        "perf::TASK-CLOCK",     "perf::PAGE-FAULTS", "perf::MINOR-FAULTS",
    "perf::CONTEXT-SWITCHES", "perf::CPU-MIGRATIONS",
};
enum { COUNT = sizeof NAMES / sizeof *NAMES };

static int set = PAPI_NULL, added;
static const char *names[COUNT];

static void refuse(const char *step, int code)
{
    FILE *out = fopen(getenv("PAPI_INSIDE_OUT"), "w");
    if (out) {
        fprintf(out, "PAPI cannot %s here: %s\n", step, PAPI_strerror(code));
        fclose(out);
    }
    added = 0;
}

__attribute__((constructor)) static void begin(void)
{
    if (!getenv("PAPI_INSIDE_OUT"))
        return;
    unsetenv("LD_PRELOAD"); /* children count for themselves or not at all */
    int code = PAPI_library_init(PAPI_VER_CURRENT);
    if (code != PAPI_VER_CURRENT)
        return refuse("start", code);
    if ((code = PAPI_multiplex_init()) != PAPI_OK)
        return refuse("multiplex", code);
    if ((code = PAPI_create_eventset(&set)) != PAPI_OK)
        return refuse("make a set", code);
    if ((code = PAPI_assign_eventset_component(set, 0)) != PAPI_OK)
        return refuse("use its first component", code);
    PAPI_option_t option;
    memset(&option, 0, sizeof option);
    option.multiplex.eventset = set;
    option.multiplex.ns = 10 * 1000 * 1000;
    option.multiplex.flags = PAPI_MULTIPLEX_FORCE_SW;
    if ((code = PAPI_set_opt(PAPI_MULTIPLEX, &option)) != PAPI_OK)
        return refuse("multiplex a set", code);
    for (int i = 0; i < COUNT; i++)
        if ((code = PAPI_add_named_event(set, NAMES[i])) == PAPI_OK)
            names[added++] = NAMES[i];
    if (added < 2)
        return refuse("add two events to a multiplexed set", code);
    if ((code = PAPI_start(set)) != PAPI_OK)
        refuse("count", code);
}

__attribute__((destructor)) static void end(void)
{
    long long counts[COUNT];
    if (added == 0)
        return;
    int code = PAPI_stop(set, counts);
    if (code != PAPI_OK)
        return refuse("stop", code);
    FILE *out = fopen(getenv("PAPI_INSIDE_OUT"), "w");
    for (int i = 0; out && i < added; i++)
        fprintf(out, "%s %lld\n", names[i], counts[i]);
    if (out)
        fclose(out);
}
