int cuInit(unsigned flags) { return STATUS; }
int cuDriverGetVersion(int *version) { *version = VERSION; return 0; }
int cuGetErrorString(int status, const char **text) { *text = "it is broken"; return 0; }
int cuDeviceGet(int *device, int index) {
    *device = index > 1 ? 0 : index;
    return index > 1 ? 101 : 0;
}
int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    for (int i = 0; i < 16; ++i) uuid[i] = i;
    return device == 0 ? 0 : 999;
}
