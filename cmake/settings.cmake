# Language, warnings, sanitizers and the one function that makes a library of a top-level folder.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(LOCKSTEP_CCACHE ccache)
if(LOCKSTEP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LOCKSTEP_CCACHE})
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Garbage is collected late: a tenth less time for a third more memory, at most 1 GiB a compiler.
  add_compile_options(--param=ggc-min-heapsize=1048576)
  # No function of ours is replaced when programs are loaded, so that the compiler may inline those
  # that other files can see, which position-independent code forbids otherwise.
  add_compile_options(-fno-semantic-interposition)
endif()

# No fused multiply-add behind our back: the same bits on every machine.
add_compile_options(-ffp-contract=off)

add_library(lockstep_settings INTERFACE)
target_compile_options(lockstep_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast
  -Wcast-align -Wconversion -Wno-sign-conversion)
if(NOT LOCKSTEP_FUZZ)
  # Fuzzing builds with another compiler, whose newest opinions are not ours to stop for.
  target_compile_options(lockstep_settings INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these two through inlined standard containers and coroutines.
  target_compile_options(lockstep_settings INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(LOCKSTEP_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Types of an anonymous namespace, where the file that is compiled includes the one that has it.
  target_compile_options(lockstep_settings INTERFACE -Wno-subobject-linkage)
endif()
if(LOCKSTEP_SANITIZE)
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
endif()

if(LOCKSTEP_FUZZ)
  add_compile_options(-fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=fuzzer-no-link,address,undefined)
endif()
# A simulated operation is allocated and freed on its own. Microsoft's allocator takes a sixth off the
# time of `run` and `verify`; without it the C library's does the same work.
add_library(lockstep_allocator INTERFACE)
find_library(LOCKSTEP_MIMALLOC mimalloc)
mark_as_advanced(LOCKSTEP_MIMALLOC)
if(LOCKSTEP_MIMALLOC AND NOT LOCKSTEP_SANITIZE AND NOT LOCKSTEP_FUZZ)
  # Nothing names it: it takes the place of malloc when it is loaded.
  target_link_options(lockstep_allocator INTERFACE
    -Wl,--push-state,--no-as-needed,${LOCKSTEP_MIMALLOC},--pop-state)
endif()

# What reads bytes that somebody else wrote. Only there fuzzing looks for coverage and bad accesses: the
# sanitizers make a compilation three times as long.
set(LOCKSTEP_FUZZED "^(io|model_(core|expression|scenario|cluster))")
# Coverage feedback for libFuzzer; the entry itself is linked in tests/fuzz.
set(LOCKSTEP_FUZZ_OPTIONS -O1 -fsanitize=fuzzer-no-link,address,undefined
  -fno-sanitize-recover=undefined)

# Folders where the time of a command does not go, because their code runs once for it, or hands each
# operation to the engine and the journal: compiled with -O1, which takes a third less time.
set(LOCKSTEP_COLD "^(cli|explain|io|model_(cluster|expression|metric|network|scenario)$|model_network_tensor_parallel|model_(strategy|trainer|user_program)|properties_(invariants|logged)|rehearsal)")

# Of a folder's sources, beside those of all.
function(lockstep_options_of out unit)
  set(options "")
  if(unit MATCHES "${LOCKSTEP_COLD}")
    list(APPEND options $<$<CONFIG:Release>:-O1>)
  endif()
  if(LOCKSTEP_FUZZ AND unit MATCHES "${LOCKSTEP_FUZZED}")
    list(APPEND options ${LOCKSTEP_FUZZ_OPTIONS})
  endif()
  set(${out} "${options}" PARENT_SCOPE)
endfunction()

# Folders that stay an object file of their own, because a program may define what they define: the
# linker then leaves the whole object in the archive.
set(LOCKSTEP_REPLACEABLE "^model_strategy_additional$")

# lockstep_units(OUT SOURCE..): what is compiled instead of the sources: files that include all sources
# of a folder, since most of a compilation is the headers that they share; folders of a library that
# have few sources are compiled together. So names in the anonymous namespaces of a library are unique;
# a test keeps its helpers in a namespace that is named after its file. LOCKSTEP_TOGETHER, where it is
# set, is the most sources of one such file; LOCKSTEP_UNITS_OF names the program whose units they are,
# where programs share sources. LOCKSTEP_UNITY=OFF compiles each source by itself.
function(lockstep_units out)
  if(NOT LOCKSTEP_UNITY)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(few 26)  # of folders that are compiled together
  set(folders "")
  foreach(source ${ARGN})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    cmake_path(GET name PARENT_PATH folder)
    if(LOCKSTEP_TOGETHER)
      # A folder of unit tests with all that lies below it: tests/unit/rehearsal.
      string(REGEX MATCH "^[^/]+/[^/]+(/[^/]+)?" folder ${folder})
    endif()
    if(name MATCHES "\\.cpp$")
      string(REPLACE "/" "_" unit ${folder})
      list(APPEND sources_of_${unit} ${name})
      if(LOCKSTEP_TOGETHER)
        list(LENGTH sources_of_${unit} number)
        math(EXPR group "(${number} - 1) / ${LOCKSTEP_TOGETHER}")
        string(APPEND unit _${group})
      endif()
      list(APPEND folders ${unit})
      string(APPEND text_of_${unit} "#include \"${name}\"\n")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  set(files "")
  set(size 0)
  foreach(unit ${folders})
    lockstep_options_of(options ${unit})
    list(LENGTH sources_of_${unit} number)
    math(EXPR size "${size} + ${number}")
    set(key "${options}")
    if(unit MATCHES "${LOCKSTEP_REPLACEABLE}")
      set(key ${unit})
    endif()
    if(LOCKSTEP_TOGETHER OR NOT files OR size GREATER few OR NOT "${key}" STREQUAL "${common}")
      set(file ${PROJECT_BINARY_DIR}/units/${LOCKSTEP_UNITS_OF}${unit}.cpp)
      list(APPEND files ${file})
      set(size ${number})
      set(common "${key}")
      set(text_of_${file} "")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${options}")
    endif()
    string(APPEND text_of_${file} "${text_of_${unit}}")
  endforeach()
  foreach(file ${files})
    file(CONFIGURE OUTPUT ${file} CONTENT "${text_of_${file}}" @ONLY)
  endforeach()
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# lockstep_library(NAME [EXCLUDE folder..]): all sources below NAME/, included as "NAME/..."; what
# needs a package that not every machine has lies in a folder that is built apart.
function(lockstep_library name)
  cmake_parse_arguments(arguments "" "" "EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/${name}/*.cpp ${PROJECT_SOURCE_DIR}/${name}/*.hpp)
  foreach(folder ${arguments_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX "/${name}/${folder}/")
  endforeach()
  if(NOT sources)
    return()
  endif()
  lockstep_units(units ${sources})
  add_library(lockstep_${name} STATIC ${units})
  set_target_properties(lockstep_${name} PROPERTIES LINKER_LANGUAGE CXX)
  add_library(lockstep::${name} ALIAS lockstep_${name})
  target_include_directories(lockstep_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/lockstep>)
  target_compile_features(lockstep_${name} PUBLIC cxx_std_20)
  target_link_libraries(lockstep_${name} PRIVATE $<BUILD_INTERFACE:lockstep_settings>)
endfunction()
