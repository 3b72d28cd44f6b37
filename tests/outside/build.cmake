# cmake -D SOURCE=... -D BUILD=... -P build.cmake: installs the build tree BUILD into itself, then
# configures, builds and runs the project of this folder against what was installed.
set(prefix ${BUILD}/outside/prefix)
set(project ${BUILD}/outside/build)
file(REMOVE_RECURSE ${BUILD}/outside)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${project} -D CMAKE_PREFIX_PATH=${prefix}
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${COMPILER})
run(${CMAKE_COMMAND} --build ${project})
run(${project}/outside)
