// A library that has of CUDA's driver the start alone.
extern "C" unsigned cuInit(unsigned) { return 0; }
