#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "io/file/checksum.hpp"
#include "io/report/run_identity.hpp"

namespace lockstep {

/// One event of a rank's journal file. The seal is written last: a record without one (0) was never
/// finished, and nothing follows it.
struct JournalRecord {
  static constexpr size_t payload_bytes = 40;
  enum Kind : uint8_t {
    none,
    head,        ///< JournalHead; the first record, and no other
    row,         ///< a Row
    completion,  ///< of the ticket `sequence` of the lane
    group,       ///< JournalGroup `sequence`; its members came before
    members,     ///< `count` of the next group's
    splits,      ///< `count` of the next row's
    full,        ///< the rank found no room to write more
    kinds
  };

  uint8_t kind = none;
  uint8_t count = 0;
  uint16_t lane = 0;
  uint32_t sequence = 0;
  alignas(8) std::byte payload[payload_bytes]{};
  uint64_t seal = 0;

  template <class T>
  void hold(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= payload_bytes);
    std::memcpy(payload, &value, sizeof value);
  }
  template <class T>
  T held() const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= payload_bytes);
    T value;
    std::memcpy(&value, payload, sizeof value);
    return value;
  }

  /// The checksum of all before the seal and of the record's number in the file, with its
  /// complement: never 0, nor 0 but for one byte.
  uint64_t seal_for(uint64_t number) const {
    std::byte bytes[sizeof(JournalRecord)];
    std::memcpy(bytes, this, sizeof bytes);
    const uint32_t sum =
        crc32c({bytes, sizeof bytes - sizeof seal}, crc32c(std::as_bytes(std::span(&number, 1))));
    return uint64_t{~sum} << 32 | sum;
  }
};
static_assert(sizeof(JournalRecord) == 56 && std::is_trivially_copyable_v<JournalRecord>);

/// What the first record of a file holds.
struct JournalHead {
  static constexpr uint64_t right_magic = 0x6c'6f'63'6b'73'74'65'70;
  static constexpr int32_t right_version = 3;

  uint64_t magic = right_magic;
  int32_t version = right_version;
  int32_t rank = 0;
  int32_t world_size = 0;
  int32_t unused = 0;
  RunIdentity identity{};
};

struct JournalGroup {
  uint64_t communicator = 0;
};

/// The file grows by this much at once: whole records, and whole pages.
inline constexpr size_t journal_window_bytes = sizeof(JournalRecord) << 14;

}  // namespace lockstep
