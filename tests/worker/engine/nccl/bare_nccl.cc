// A library that has NCCL's version and nothing else of it: MOTLEY_BARE_NCCL_VERSION, 0 where it fails to say.
extern "C" int ncclGetVersion(int* version) {
  *version = MOTLEY_BARE_NCCL_VERSION;
  return MOTLEY_BARE_NCCL_VERSION == 0 ? 3 : 0;
}
