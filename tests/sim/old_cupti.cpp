// A libcupti from before CUDA graphs: the recorder must say that it is too old and leave the program alone.
#include <cupti.h>

extern "C" CUptiResult cuptiGetVersion(uint32_t* version) {
  *version = 8;
  return CUPTI_SUCCESS;
}
