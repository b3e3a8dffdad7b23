
static struct { float at; int live; } events[64];
static float now;
static int made;
int cuEventCreate(void **event, unsigned flags) {
    *event = &events[made++ % 64];
    *(int *)((char *)*event + 4) = 1;
    return 0;
}
int cuEventRecord(void *event, void *stream) { *(float *)event = now; return stream ? 0 : 400; }
int cuEventElapsedTime(float *ms, void *start, void *end) {
    *ms = *(float *)end - *(float *)start;
    return 0;
}
int cuEventDestroy_v2(void *event) { *(int *)((char *)event + 4) = 0; return 0; }
void go_on(float ms) { now += ms; }
void *nth(int n) { return &events[n]; }
int live(void) { int n = 0; for (int i = 0; i < 64; i++) n += events[i].live; return n; }
