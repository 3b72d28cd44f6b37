# LibTorch as a C++ library, from the folder that `./dev libtorch` fills. Defines lockstep_libtorch
# where it is there; without it everything but the rank programs builds.
set(LOCKSTEP_LIBTORCH "${PROJECT_SOURCE_DIR}/.cache/libtorch" CACHE PATH
    "Folder that holds torch/ and nvidia/")
set(torch ${LOCKSTEP_LIBTORCH}/torch)
if(NOT EXISTS ${torch}/lib/libtorch_cpu.so OR LOCKSTEP_SANITIZE OR LOCKSTEP_FUZZ)
  return()
endif()
# libtorch.so and libtorch_cuda.so are left alone: they pull in the libraries of a GPU.
add_library(lockstep_libtorch INTERFACE)
target_include_directories(lockstep_libtorch SYSTEM INTERFACE
  ${torch}/include ${torch}/include/torch/csrc/api/include)
# Its folder brings the headers of another version of fmt, and no library of that version.
target_compile_definitions(lockstep_libtorch INTERFACE FMT_HEADER_ONLY)
target_link_options(lockstep_libtorch INTERFACE
  -Wl,-rpath,${torch}/lib -Wl,-rpath-link,${LOCKSTEP_LIBTORCH}/nvidia/cu13/lib)
target_link_libraries(lockstep_libtorch INTERFACE
  ${torch}/lib/libtorch_cpu.so ${torch}/lib/libc10.so)
