# CUDA headers for the recorder: CUPTI, the driver API's types and NVTX. Nothing of CUDA is linked.
# Looked for in CUDA_HOME, the usual place and a folder scripts/quickstart filled from the Python package index.
find_path(LAMINA_CUDA_INCLUDE_DIR cupti.h
  HINTS ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda ${PROJECT_SOURCE_DIR}/build/cuda-headers
  PATH_SUFFIXES include extras/CUPTI/include targets/x86_64-linux/include)
find_path(LAMINA_NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h
  HINTS ${LAMINA_CUDA_INCLUDE_DIR} ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda ${PROJECT_SOURCE_DIR}/build/cuda-headers
  PATH_SUFFIXES include)
find_path(LAMINA_CUDA_API_INCLUDE_DIR cuda.h
  HINTS ${LAMINA_CUDA_INCLUDE_DIR} ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda ${PROJECT_SOURCE_DIR}/build/cuda-headers
  PATH_SUFFIXES include)
if(NOT LAMINA_CUDA_INCLUDE_DIR OR NOT LAMINA_NVTX_INCLUDE_DIR OR NOT LAMINA_CUDA_API_INCLUDE_DIR)
  message(FATAL_ERROR "CUPTI, CUDA or NVTX headers not found: set CUDA_HOME to a CUDA toolkit (12 or 13), "
                      "or run scripts/quickstart, which fetches the headers alone.")
endif()

add_library(lamina_cuda_headers INTERFACE)
target_include_directories(lamina_cuda_headers SYSTEM INTERFACE
  ${LAMINA_CUDA_INCLUDE_DIR} ${LAMINA_NVTX_INCLUDE_DIR} ${LAMINA_CUDA_API_INCLUDE_DIR})
