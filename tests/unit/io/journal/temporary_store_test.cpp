#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <vector>

#include "io/journal/temporary_store.hpp"

using namespace lockstep;

namespace temporary_store_test {

namespace {

namespace fs = std::filesystem;

std::vector<std::byte> pattern(size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((i * 7 + seed) & 0xffu);
  }
  return bytes;
}

/// No file of this process may be longer, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit lower{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &lower);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("what a temporary store saved it gives back, and its folder shows no file") {
  const fs::path folder = fs::temp_directory_path() / "lockstep-store-test";
  fs::create_directories(folder);
  {
    TemporaryStore store(folder.string());
    const auto first = store.save(pattern(1000, 1));
    const auto second = store.save(pattern(70'000, 2));
    REQUIRE(first);
    REQUIRE(second);
    CHECK(fs::is_empty(folder));
    CHECK(store.bytes() == 71'000);
    CHECK(store.failure().empty());
    std::vector<std::byte> bytes(70'000);
    store.load(*second, bytes);
    CHECK(bytes == pattern(70'000, 2));
    bytes.resize(1000);
    store.load(*first, bytes);
    CHECK(bytes == pattern(1000, 1));
  }
  fs::remove_all(folder);
}

TEST_CASE("a store grows up to its limit, and tells once that it has begun") {
  int told = 0;
  TemporaryStore store(fs::temp_directory_path().string(), 100'000,
                       [&told](const TemporaryStore&) { ++told; });
  CHECK(told == 0);
  REQUIRE(store.save(pattern(60'000, 1)));
  REQUIRE(store.save(pattern(40'000, 2)));
  CHECK(told == 1);
  CHECK(store.failure().empty());
  CHECK_FALSE(store.save(pattern(1, 3)));
  CHECK(store.failure().find("use fewer ranks or steps") != std::string::npos);
  CHECK(store.bytes() == 100'000);
}

TEST_CASE("a folder that takes no file is named, and what went wrong there") {
  TemporaryStore store("/proc/no-such-folder");
  CHECK_FALSE(store.save(pattern(10, 0)));
  CHECK(store.failure().find("/proc/no-such-folder") != std::string::npos);
  CHECK(store.failure().find("No such file or directory") != std::string::npos);
  CHECK(store.failure().find("TMPDIR") != std::string::npos);
}

TEST_CASE("a store without room keeps what it has and says that there is no more") {
  TemporaryStore store;
  const auto kept = store.save(pattern(50'000, 3));
  REQUIRE(kept);
  {
    const FileSizeLimit limit(60'000);
    CHECK_FALSE(store.save(pattern(50'000, 4)));
  }
  CHECK(store.failure().find("File too large") != std::string::npos);
  std::vector<std::byte> bytes(50'000);
  store.load(*kept, bytes);
  CHECK(bytes == pattern(50'000, 3));
  bytes.resize(200'000);
  CHECK_THROWS_AS(store.load(*kept, bytes), StoreError);
}

}  // namespace temporary_store_test
