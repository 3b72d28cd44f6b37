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

# With CUDA: the same folder's libtorch_cuda.so, a CUDA Toolkit 13 and NCCL. Defines
# lockstep_libtorch_cuda where all are there. Linked, such a program starts only where cuDNN and the
# other libraries are that libtorch_cuda.so names; here they may be absent.
find_path(LOCKSTEP_CUDA_INCLUDE cuda_runtime_api.h
          HINTS $ENV{CUDA_HOME} /usr/local/cuda /usr/local/cuda-13.0 PATH_SUFFIXES include)
find_library(LOCKSTEP_CUDART cudart
             HINTS $ENV{CUDA_HOME} /usr/local/cuda /usr/local/cuda-13.0 PATH_SUFFIXES lib64 lib)
set(nccl_places $ENV{NCCL_HOME} ${LOCKSTEP_LIBTORCH}/nvidia/nccl $ENV{CUDA_HOME} /usr/local/cuda
                /usr/local/cuda-13.0)
find_path(LOCKSTEP_NCCL_INCLUDE nccl.h HINTS ${nccl_places} PATH_SUFFIXES include)
find_library(LOCKSTEP_NCCL NAMES nccl libnccl.so.2 HINTS ${nccl_places} PATH_SUFFIXES lib64 lib)
foreach(part LOCKSTEP_CUDA_INCLUDE LOCKSTEP_CUDART LOCKSTEP_NCCL_INCLUDE LOCKSTEP_NCCL)
  mark_as_advanced(${part})
  if(NOT ${part})
    return()
  endif()
endforeach()
if(NOT EXISTS ${torch}/lib/libtorch_cuda.so)
  return()
endif()
add_library(lockstep_libtorch_cuda INTERFACE)
target_include_directories(lockstep_libtorch_cuda SYSTEM INTERFACE
  ${LOCKSTEP_CUDA_INCLUDE} ${LOCKSTEP_NCCL_INCLUDE})
target_link_options(lockstep_libtorch_cuda INTERFACE -Wl,--allow-shlib-undefined)
# One word, so that CMake keeps it together: nothing of ours calls libtorch_cuda.so, it registers its
# kernels when it is loaded.
string(JOIN "," cuda_libraries ${torch}/lib/libtorch_cuda.so ${torch}/lib/libc10_cuda.so
       ${LOCKSTEP_CUDART} ${LOCKSTEP_NCCL})
target_link_libraries(lockstep_libtorch_cuda INTERFACE
  -Wl,--push-state,--no-as-needed,${cuda_libraries},--pop-state lockstep_libtorch)
