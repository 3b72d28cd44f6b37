#include "backend/libtorch/meeting.hpp"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <random>
#include <string_view>
#include <thread>

#include "backend/device/device.hpp"
#include "backend/device/own_board.hpp"
#include "backend/gloo/pipe_signal.hpp"

namespace lockstep::backend {

namespace {

// LibTorch carries a Gloo of its own and exports it. Ours must be bound to the library whose
// headers we were compiled with; the order of linking decides.
void ensure_own_gloo() {
  Dl_info found{};
  const auto make_device =
      static_cast<std::shared_ptr<gloo::transport::Device> (*)(const gloo::transport::tcp::attr&)>(
          &gloo::transport::tcp::CreateDevice);
  // POSIX promises that a function's address fits a pointer to void.
  if (dladdr(reinterpret_cast<void*>(make_device), &found) != 0 && found.dli_fname != nullptr &&
      std::string_view(found.dli_fname).find("libtorch") != std::string_view::npos) {
    throw WorldUnavailable("this program was linked with LibTorch before libgloo");
  }
}

gloo::transport::tcp::attr own_address(const std::string& master_address) {
  gloo::transport::tcp::attr address;
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME")) {
    address.iface = interface;
  } else if (master_address == "127.0.0.1" || master_address == "localhost") {
    address.hostname = "127.0.0.1";
  } else {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    address.hostname = name.data();
  }
  return address;
}

// One line: what LibTorch says, without its trace of the stack.
std::string reason_of(const std::exception& error) {
  const auto* of_libtorch = dynamic_cast<const c10::Error*>(&error);
  const std::string text =
      of_libtorch != nullptr ? of_libtorch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

// Beyond what was asked of the store, for its answer to come.
constexpr std::chrono::seconds answer_limit{2};

// Calls it on a thread of its own, which is left behind where it has not returned within the limit
// (then false): the store has no deadline where a link is down or rank 0 is stopped. What the call
// uses must be its own. What it throws is thrown here.
// `goes_on` says after each limit whether to wait for as long again.
bool within(
    std::chrono::milliseconds limit, std::function<void()> call,
    const std::function<bool()>& goes_on = [] { return false; }) {
  std::packaged_task<void()> task(std::move(call));
  std::future<void> done = task.get_future();
  std::thread thread(std::move(task));
  while (done.wait_for(limit) != std::future_status::ready) {
    if (!goes_on()) {
      thread.detach();
      return false;
    }
  }
  thread.join();
  done.get();
  return true;
}

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

/// Gloo asks for its contexts' addresses here.
class Meeting::Store final : public gloo::rendezvous::Store {
 public:
  Store(const std::string& host, const c10d::TCPStoreOptions& options)
      : store_(c10::make_intrusive<c10d::TCPStore>(host, options)), timeout_(options.timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(key, std::vector<uint8_t>(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::vector<uint8_t> data = store_->get(key);
    return {data.begin(), data.end()};
  }
  void wait(const std::vector<std::string>& keys) override { store_->wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    store_->wait(keys, timeout);
  }

  /// False also where the store is gone.
  bool has(const std::string& key) noexcept {
    try {
      return store_->check({key});
    } catch (const std::exception&) {
      return false;
    }
  }
  std::optional<std::vector<uint8_t>> look(const std::string& key) {
    return store_->check({key}) ? std::optional(store_->get(key)) : std::nullopt;
  }

  void set_number(const std::string& key, uint64_t number) {
    std::vector<uint8_t> bytes(sizeof number);
    std::memcpy(bytes.data(), &number, sizeof number);
    store_->set(key, bytes);
  }
  /// Zero where it is none.
  uint64_t number(const std::string& key) {
    const std::vector<uint8_t> bytes = store_->get(key);
    uint64_t number = 0;
    std::memcpy(&number, bytes.data(), std::min(sizeof number, bytes.size()));
    return number;
  }

  /// Counts this rank in; when all are, says so under `all`.
  void arrive(const std::string& name, int64_t world_size) {
    if (store_->add(name, 1) == world_size) {
      store_->set(name + "/all", std::vector<uint8_t>{1});
    }
  }
  void wait_for(const std::string& name, std::chrono::milliseconds timeout) {
    store_->wait({name + "/all"}, timeout);
  }

 private:
  c10::intrusive_ptr<c10d::TCPStore> store_;
  std::chrono::milliseconds timeout_;
};

class Meeting::StoreBoard final : public Board {
 public:
  StoreBoard(std::shared_ptr<Store> store, std::string name)
      : store_(std::move(store)), name_(std::move(name)) {}
  void post(const std::string& key, const std::vector<uint8_t>& word) override {
    ask([store = store_, key = name_ + key, word] {
      store->set(key, std::vector<char>(word.begin(), word.end()));
    });
  }
  std::optional<std::vector<uint8_t>> look(const std::string& key) override {
    const auto word = std::make_shared<std::optional<std::vector<uint8_t>>>();
    ask([store = store_, key = name_ + key, word] { *word = store->look(key); });
    return *word;
  }

 private:
  static void ask(std::function<void()> question) {
    bool answered = false;
    try {
      answered = within(answer_limit, std::move(question));
    } catch (const std::exception& error) {
      throw DeviceError(reason_of(error));
    }
    if (!answered) {
      throw DeviceError(fmt::format("the store of rank 0 says nothing within {} s",
                                    std::chrono::seconds(answer_limit).count()));
    }
  }

  std::shared_ptr<Store> store_;
  std::string name_;
};

std::unique_ptr<Board> Meeting::board(const std::string& name) {
  if (store_ == nullptr) {
    return std::make_unique<OwnBoard>();
  }
  return std::make_unique<StoreBoard>(store_, name + "/");
}

Meeting::Meeting(const MeetingOptions& options) : options_(options) {
  ensure_own_gloo();
  const ProcessPlace& place = options_.place;
  if (place.world_size == 1) {
    std::random_device device;
    run_number_ = uint64_t{device()} << 32 | device();
    return;
  }
  open_store();
  wait_for_joining();
}

std::string Meeting::meeting_place() const {
  return fmt::format("{}:{}", options_.place.master_address, options_.place.master_port);
}

std::chrono::milliseconds Meeting::left_to_join() const {
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began_);
  return std::max(options_.join_timeout - passed, std::chrono::milliseconds(1));
}

void Meeting::open_store() {
  const ProcessPlace& place = options_.place;
  c10d::TCPStoreOptions store;
  store.port = place.master_port;
  store.isServer = place.rank == 0 && !place.agent_hosts_store;
  store.numWorkers = static_cast<size_t>(place.world_size);
  store.waitWorkers = false;
  store.timeout = options_.join_timeout;
  if (store.isServer && options_.listening_socket) {
    store.masterListenFd = *options_.listening_socket;
  }
  const auto nobody = [this](const std::string& reason) {
    return WorldUnavailable(
        fmt::format("nobody answers at {}, within {} s; start rank 0 there, or set "
                    "MASTER_ADDR and MASTER_PORT to its host and port ({})",
                    meeting_place(), seconds(options_.join_timeout), reason));
  };
  try {
    const auto made = std::make_shared<std::shared_ptr<Store>>();
    const auto open = [made, store, address = place.master_address] {
      *made = std::make_shared<Store>(address, store);
    };
    // Its first question has no timeout: who listens may be stopped.
    if (!within(options_.join_timeout + answer_limit, open)) {
      throw nobody("rank 0 took the connection and says nothing: is it stopped?");
    }
    store_ = *made;
  } catch (const c10::Error& error) {
    if (store.isServer) {
      throw WorldUnavailable(
          fmt::format("rank 0 cannot listen at {}: {}; set MASTER_PORT to a free port of this host",
                      meeting_place(), reason_of(error)));
    }
    throw nobody(reason_of(error));
  }
}

std::string Meeting::who_did_not_come(const std::vector<int32_t>& missing) const {
  const bool one = missing.size() == 1;
  const std::string who =
      fmt::format("rank{} {} never joined at {}, within {} s", one ? "" : "s",
                  fmt::join(missing, ", "), meeting_place(), seconds(options_.join_timeout));
  if (options_.launched) {
    return fmt::format(
        "{}; {} started and did not come so far: stopped, or this machine is too busy", who,
        one ? "it was" : "they were");
  }
  return fmt::format("{}; start {} with WORLD_SIZE={}, and the same MASTER_ADDR and MASTER_PORT",
                     who, one ? "it" : "them", options_.place.world_size);
}

void Meeting::wait_for_joining() {
  const int32_t world_size = options_.place.world_size;
  const int32_t own = options_.place.rank;
  const auto sign = [](int32_t rank) { return fmt::format("joined/{}", rank); };
  const auto number = std::make_shared<uint64_t>(0);
  const auto meet = [store = store_, own, world_size, sign, number, timeout = left_to_join()] {
    if (own == 0) {
      std::random_device device;
      *number = uint64_t{device()} << 32 | device();
      store->set_number("run", *number);
    }
    store->set(sign(own), {1});
    store->arrive("joined", world_size);
    store->wait_for("joined", timeout);
    *number = store->number("run");
  };
  const auto lost = [this](const std::string& reason) {
    return WorldUnavailable(
        fmt::format("rank 0, which serves {}, is gone{}; its own output says why", meeting_place(),
                    reason.empty() ? "" : " (" + reason + ")"));
  };
  try {
    // The store answers a little after its own timeout, and says who came.
    if (!within(left_to_join() + answer_limit, meet)) {
      throw lost("no answer");
    }
  } catch (const c10::Error& error) {
    const auto came = std::make_shared<std::vector<bool>>();
    const auto look = [store = store_, came, world_size, sign] {
      for (int32_t rank = 0; rank < world_size; ++rank) {
        came->push_back(store->has(sign(rank)));
      }
    };
    if (!within(answer_limit, look)) {
      throw lost("no answer");
    }
    std::vector<int32_t> missing;
    for (int32_t rank = 0; rank < world_size; ++rank) {
      if (!(*came)[static_cast<size_t>(rank)]) {
        missing.push_back(rank);
      }
    }
    const bool is_there = (*came)[static_cast<size_t>(own)];
    throw is_there && !missing.empty() ? WorldUnavailable(who_did_not_come(missing))
                                       : lost(reason_of(error));
  }
  run_number_ = *number;
}

Meeting::~Meeting() = default;

std::shared_ptr<gloo::Context> Meeting::connect() {
  const ProcessPlace& place = options_.place;
  if (place.world_size == 1) {
    return nullptr;
  }
  try {
    auto context = std::make_shared<gloo::rendezvous::Context>(place.rank, place.world_size);
    const auto mesh = [context, store = store_, timeout = left_to_join(), place] {
      // The device's thread inherits the mask of the thread that makes it.
      const PipeSignalBlocked blocked;
      auto device = gloo::transport::tcp::CreateDevice(own_address(place.master_address));
      context->setTimeout(timeout);
      context->connectFullMesh(*store, device);
      // Nobody may begin, and end, while others still connect to it.
      store->arrive("connected", place.world_size);
      store->wait_for("connected", timeout);
    };
    // Gloo takes its timeout for each of several attempts.
    if (!within(left_to_join(), mesh)) {
      throw std::runtime_error(fmt::format("not within {} s", seconds(options_.join_timeout)));
    }
    return context;
  } catch (const std::exception& error) {
    throw WorldUnavailable(fmt::format(
        "the ranks could not be connected by Gloo: {}; set GLOO_SOCKET_IFNAME to the interface by "
        "which the hosts see each other, and look at the limit of open files",
        reason_of(error)));
  }
}

// Rank 0 serves the store, so it leaves last: when all others have said that they know.
void Meeting::wait_for_all(Elsewhere* elsewhere) noexcept {
  if (store_ == nullptr) {
    return;
  }
  const auto part = [place = options_.place, store = store_, timeout = options_.end_timeout] {
    store->arrive("done", place.world_size);
    store->wait_for("done", std::chrono::hours(24 * 365));  // ended by `within`
    if (place.rank != 0) {
      store->arrive("left", place.world_size - 1);
    } else {
      store->wait_for("left", timeout);
    }
  };
  try {
    const auto goes_on = [elsewhere] { return elsewhere != nullptr && elsewhere->got_on(); };
    if (elsewhere != nullptr) {
      elsewhere->got_on();  // forgets what came until now
    }
    within(options_.end_timeout + answer_limit, part, goes_on);
  } catch (const std::exception&) {
    // A rank that never comes has been reported by whoever started it.
  }
}

}  // namespace lockstep::backend
