#ifdef SMALL
#define NJ 32
#define NK 32
#else
#define NJ 96
#define NK 96
#endif
#define REAL float
