# What there is to know of a PyTorch without asking its own CMake files, which look for all of CUDA: its headers, its
# libraries, its version and the C++ ABI of its strings.

# Sets <prefix>_VERSION (2.11), <prefix>_ABI (cxx11 or precxx11), <prefix>_INCLUDE_DIRS and <prefix>_LIBRARIES from the
# folder of a PyTorch: site-packages/torch of a wheel, a libtorch folder, or /usr.
function(lamina_read_torch folder prefix)
  file(GLOB c10 ${folder}/lib/libc10.so ${folder}/lib64/libc10.so ${folder}/lib/*/libc10.so)
  list(APPEND c10 "")
  list(GET c10 0 c10)
  get_filename_component(libraries "${c10}" DIRECTORY)
  set(api ${folder}/include/torch/csrc/api/include)
  # From 2.9 on the numbers are in a file that this one includes.
  foreach(header ${api}/torch/version.h ${folder}/include/torch/headeronly/version.h)
    if(EXISTS ${header})
      file(STRINGS ${header} lines REGEX "^#define TORCH_VERSION_(MAJOR|MINOR) ")
      list(APPEND version_lines ${lines})
    endif()
  endforeach()
  string(REGEX MATCHALL "[0-9]+" numbers "${version_lines}")
  list(LENGTH numbers count)
  if(NOT c10 OR NOT EXISTS ${libraries}/libtorch_cpu.so OR count LESS 2)
    message(FATAL_ERROR "${folder} is no PyTorch: include/torch and lib/libtorch_cpu.so are looked for there")
  endif()
  list(GET numbers 0 major)
  list(GET numbers 1 minor)

  # A constructor that takes a string shows which string it is; the library's own copies of std symbols show nothing.
  execute_process(COMMAND ${CMAKE_NM} -D ${c10} OUTPUT_VARIABLE symbols RESULT_VARIABLE status)
  if(status OR NOT symbols MATCHES "_ZN3c105ErrorC1E")
    message(FATAL_ERROR "${CMAKE_NM} shows no constructor of c10::Error in ${c10}")
  elseif(symbols MATCHES "_ZN3c105ErrorC1E[^\n]*__cxx11")
    set(abi cxx11)
  else()
    set(abi precxx11)
  endif()

  set(${prefix}_VERSION ${major}.${minor} PARENT_SCOPE)
  set(${prefix}_ABI ${abi} PARENT_SCOPE)
  set(${prefix}_INCLUDE_DIRS ${folder}/include ${api} PARENT_SCOPE)
  set(${prefix}_LIBRARIES ${libraries}/libtorch_cpu.so ${c10} PARENT_SCOPE)
endfunction()

# Compiles and links a target for a PyTorch. Its headers lay classes out as a release build does, whatever this build is.
function(lamina_use_torch target folder)
  lamina_read_torch(${folder} torch)
  set_target_properties(${target} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
  target_compile_definitions(${target} PRIVATE NDEBUG $<$<STREQUAL:${torch_ABI},precxx11>:_GLIBCXX_USE_CXX11_ABI=0>)
  foreach(dir ${torch_INCLUDE_DIRS})
    # -isystem /usr/include would hide the compiler's own headers from themselves.
    if(NOT dir STREQUAL "/usr/include")
      target_include_directories(${target} SYSTEM PRIVATE ${dir})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE ${torch_LIBRARIES})
  # libtorch_cpu.so of a CUDA build needs libraries that need not be here.
  target_link_options(${target} PRIVATE -Wl,--allow-shlib-undefined)
endfunction()
