#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace gloo {
class Context;
namespace transport {
class Device;
}  // namespace transport
}  // namespace gloo

namespace lockstep::backend {

/// The ranks could not be connected: a reason outside of the program (port, descriptor, interface,
/// a rank that did not come). what() ends with what to do.
class WorldUnavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// Error for ranks on this host that could not be connected.
inline WorldUnavailable loopback_unavailable(const std::string& reason) {
  return WorldUnavailable("the ranks could not be connected over 127.0.0.1: " + reason +
                          "; check the loopback interface and the limit of open files");
}

/// Connected Gloo contexts, one per rank, kept from run to run because connecting costs more than
/// most runs. One run at a time may use a fleet.
class Fleet {
 public:
  using Contexts = std::vector<std::shared_ptr<gloo::Context>>;

  Fleet() = default;
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// The contexts of this world size, by rank; connects them when there are none. A world of one
  /// has nobody to talk to: one null context. Throws WorldUnavailable.
  const Contexts& connected(int32_t world_size);
  /// Closes the contexts of this world size: after a hang their connections hold stale messages.
  void discard(int32_t world_size);
  /// A number that no earlier run of this fleet had: keeps the messages of two runs apart.
  uint64_t next_run() { return ++runs_; }

 private:
  std::shared_ptr<gloo::transport::Device> device_;
  std::map<int32_t, Contexts> contexts_;
  uint64_t runs_ = 0;
};

}  // namespace lockstep::backend
