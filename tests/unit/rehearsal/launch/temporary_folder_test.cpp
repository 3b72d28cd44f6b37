#include "rehearsal/launch/temporary_folder.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "rehearsal/launch/work_meter.hpp"
#include "tests/unit/temporary_place.hpp"

using namespace lockstep::cli;

namespace temporary_folder_test {

namespace {

namespace fs = std::filesystem;

/// TMPDIR for as long as this lives.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    if (const char* before = std::getenv("TMPDIR")) {
      before_ = before;
    }
    setenv("TMPDIR", place_.path().c_str(), 1);
  }
  ~TemporaryDirectory() {
    before_.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before_.c_str(), 1);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return place_.path(); }
  int64_t entries() const {
    return std::distance(fs::directory_iterator(path()), fs::directory_iterator());
  }

 private:
  lockstep::test::TemporaryPlace place_;
  std::string before_;
};

/// A process that has a temporary folder with a file in it, and waits.
pid_t process_with_folder() {
  int ready[2] = {-1, -1};
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const TemporaryFolder folder;
    std::ofstream(folder.path() + "/rank-0.journal") << "rows";
    if (write(ready[1], "x", 1) == 1) {
      pause();
    }
    _exit(0);
  }
  char letter = 0;
  REQUIRE(read(ready[0], &letter, 1) == 1);
  close(ready[0]);
  close(ready[1]);
  return child;
}

void end(pid_t process) {
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
}

}  // namespace

TEST_CASE("what a killed process left is removed by the next and never what a living one has") {
  const TemporaryDirectory place;
  const pid_t living = process_with_folder();
  const pid_t killed = process_with_folder();
  end(killed);
  CHECK(place.entries() == 2);
  {
    const TemporaryFolder own;
    CHECK(place.entries() == 2);  // that of the living one and this
  }
  CHECK(place.entries() == 1);
  end(living);
  { const TemporaryFolder own; }
  CHECK(place.entries() == 0);
}

TEST_CASE("folders that nobody held or that were kept stay") {
  const TemporaryDirectory place;
  fs::create_directory(place.path() + "/lockstep-abcdef");  // of somebody else: no owner in it
  std::string kept;
  {
    TemporaryFolder folder;
    kept = folder.keep();
  }
  { const TemporaryFolder next; }
  CHECK(fs::exists(place.path() + "/lockstep-abcdef"));
  CHECK(fs::exists(kept));
  CHECK(fs::is_empty(kept));
}

TEST_CASE("a process that computes differs from one that waits") {
  const pid_t busy = fork();
  if (busy == 0) {
    for (std::atomic<uint64_t> turns = 0;;) {
      turns.fetch_add(1);
    }
  }
  const pid_t waiting = fork();
  if (waiting == 0) {
    pause();
    _exit(0);
  }
  WorkMeter of_busy(busy);
  WorkMeter of_waiting(waiting);
  CHECK_FALSE(of_busy.worked());  // too early
  sleep(2);
  CHECK(of_busy.worked());
  CHECK_FALSE(of_waiting.worked());
  kill(busy, SIGSTOP);
  of_busy.worked();
  sleep(1);
  of_busy.worked();
  sleep(1);
  CHECK_FALSE(of_busy.worked());
  end(busy);
  end(waiting);
}

}  // namespace temporary_folder_test
