#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "backend/device/board.hpp"
#include "backend/device/world.hpp"
#include "model/network/execute.hpp"

namespace lockstep::test {

/// What connects the fake devices of one run: the library's communicators, and the board.
class Fabric {
 public:
  /// What one member brought to one call of one link.
  struct Contribution {
    OpKind kind = OpKind::barrier;
    int64_t bytes = 0;
    int32_t root = -1;
    Values values;
    std::vector<int64_t> splits;
  };
  /// By member; of point-to-point the sender's alone.
  struct Call {
    std::map<int32_t, Contribution> came;
    bool taken = false;  ///< point-to-point: a receive has come
  };
  struct Link {
    std::set<int32_t> opened;
    std::map<std::pair<bool, int64_t>, Call> calls;  ///< (point-to-point, number)
    std::map<std::pair<int32_t, OpKind>, int64_t> next;
  };

  std::mutex mutex;
  std::map<std::string, Link> links;
  std::map<std::string, std::vector<uint8_t>> words;
};

class FakeBoard final : public backend::Board {
 public:
  explicit FakeBoard(Fabric& fabric) : fabric_(fabric) {}
  void post(const std::string& key, const std::vector<uint8_t>& word) override;
  std::optional<std::vector<uint8_t>> look(const std::string& key) override;

 private:
  Fabric& fabric_;
};

/// A device of streams that run only while somebody looks at them, with the reference arithmetic,
/// and a library like NCCL: no tags, no check of what members call, launching that takes a while.
class FakeDevice final : public backend::Device, public Operands {
 public:
  FakeDevice(Fabric& fabric, const RunOptions& options) : fabric_(fabric), options_(options) {}

  void start_clock() override { start_ = std::chrono::steady_clock::now(); }
  void allocate(BufferId buffer, const BufferSpec& spec, bool carries_values) override;
  void release(BufferId buffer) override { buffers_.erase(buffer.value); }
  void write(const Slice& to, const Values& values) override { store(to, values); }
  Values read(const Slice& from) override { return load(from); }

  backend::Mark mark(backend::StreamNumber stream) override;
  void wait_for(backend::StreamNumber stream, backend::Mark mark) override;
  bool reached(backend::Mark mark) override;
  Time time_of(backend::Mark mark) override { return reached_.at(mark); }
  void forget(backend::Mark) override {}

  bool waits_for_device(const Op&) const override { return false; }
  void compute(const Op& op) override;

  backend::LinkId open_link(const std::string& name, int32_t self, int32_t size) override;
  backend::LinkState state_of(backend::LinkId link) override;
  std::string trouble_of(backend::LinkId) override { return trouble; }
  void communicate(backend::StreamNumber stream, std::span<const backend::LinkedOp> ops) override;
  void complete(backend::StreamNumber stream, std::span<const backend::LinkedOp> ops) override;
  void abort_links() noexcept override { aborted_ = true; }

  Values load(const Slice& from) override;
  void store(const Slice& to, const Values& values) override;

  int64_t room = 1'000'000'000;  ///< bytes that one buffer may have
  std::string trouble{};         ///< what the library says of a broken link
  std::string refusal{};         ///< what the device says of a kernel; empty: it takes it
  size_t buffers_held() const { return buffers_.size(); }

 private:
  /// Something in a stream: true once it is done.
  using Item = std::function<bool()>;
  struct OpenLink {
    std::string name;
    int32_t self = 0;
    int32_t size = 1;
    int busy_looks = 0;
  };
  /// One operation of a call that has arrived.
  struct Arrival {
    const backend::LinkedOp linked;
    std::pair<bool, int64_t> call;
    bool done = false;
  };
  void run_streams();
  Arrival arrive(const backend::LinkedOp& linked);
  bool finish(Arrival& arrival);
  bool finish_message(Arrival& arrival, Fabric::Call& call);
  Values result(const backend::LinkedOp& linked, const Fabric::Call& call) const;

  Fabric& fabric_;
  const RunOptions& options_;
  std::chrono::steady_clock::time_point start_{};
  std::map<uint32_t, std::pair<BufferSpec, Values>> buffers_;
  std::map<backend::StreamNumber, std::deque<Item>> streams_;
  std::map<backend::Mark, Time> reached_;  ///< all that ever were
  backend::Mark marks_ = 0;
  std::vector<OpenLink> links_;
  std::atomic<bool> aborted_ = false;
};

/// Runs the program with one thread per rank, each over a device of its own.
RunResult run_on_fake_devices(const RunOptions& options, std::chrono::milliseconds deadline,
                              const ProgramOfRank& program_of_rank);

}  // namespace lockstep::test
