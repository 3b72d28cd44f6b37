#include "io/report/report_envelope.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "io/file/checksum.hpp"
#include "io/report/report_fields.hpp"

namespace lockstep {

namespace {

constexpr size_t block_bytes = size_t{64} << 10;

struct Head {
  char magic[8] = {'L', 'S', 'R', 'E', 'P', 'O', 'R', 'T'};
  uint32_t version = report_version;
  uint32_t unused = 0;
  uint64_t content_bytes = 0;
  uint32_t checksum = 0;  ///< of all before it
  uint32_t complement = 0;
};
static_assert(sizeof(Head) == 32 && std::is_trivially_copyable_v<Head>);

uint32_t checksum_of(const Head& head) {
  return crc32c(std::as_bytes(std::span(&head, 1)).first(offsetof(Head, checksum)));
}

uint32_t checksum_of(uint64_t block, std::span<const uint8_t> bytes) {
  return crc32c(std::as_bytes(bytes), crc32c(std::as_bytes(std::span(&block, 1))));
}

template <class T>
void add(std::vector<uint8_t>& to, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
  to.insert(to.end(), begin, begin + bytes.size());
}

size_t file_bytes(uint64_t content_bytes) {
  const uint64_t blocks = (content_bytes + block_bytes - 1) / block_bytes;
  return sizeof(Head) + content_bytes + blocks * sizeof(uint32_t);
}

[[noreturn]] void refuse_version(int64_t version) {
  throw ReportError(fmt::format(
      "it is a report of format {}, and this version of lockstep reads format {}: compare with the "
      "version that the ranks had, or run them again",
      version, report_version));
}

// Up to version 5 a report was its content alone, without checksums.
void refuse_older_version(std::span<const uint8_t> file) {
  constexpr uint8_t first_map = 0xa0;
  if (file.empty() || file.front() < first_map || file.front() >= first_map + 0x20) {
    return;
  }
  try {
    check_cbor(file);
  } catch (const ReportError&) {
    return;
  }
  const Json json = Json::from_cbor(file.begin(), file.end(), true, false);
  if (json.is_object() && json.value("format", Json()) == report_format) {
    const Json version = json.value("version", Json());
    refuse_version(version.is_number_integer() ? version.get<int64_t>() : 0);
  }
}

}  // namespace

std::vector<uint8_t> sealed_report(std::span<const uint8_t> content) {
  std::vector<uint8_t> file;
  file.reserve(file_bytes(content.size()));
  Head head;
  head.content_bytes = content.size();
  head.checksum = checksum_of(head);
  head.complement = ~head.checksum;
  add(file, head);
  for (uint64_t block = 0; !content.empty(); ++block) {
    const auto bytes = content.first(std::min(block_bytes, content.size()));
    add(file, checksum_of(block, bytes));
    file.insert(file.end(), bytes.begin(), bytes.end());
    content = content.subspan(bytes.size());
  }
  return file;
}

std::vector<uint8_t> content_of_report(std::span<const uint8_t> file) {
  Head head;
  if (file.size() < sizeof head) {
    refuse_older_version(file);
    throw DamagedReport(file.size(), "the file is cut short here");
  }
  std::memcpy(&head, file.data(), sizeof head);
  if (std::memcmp(head.magic, Head().magic, sizeof head.magic) != 0) {
    refuse_older_version(file);
  }
  if (head.checksum != checksum_of(head) || head.complement != ~head.checksum) {
    throw DamagedReport(0, fmt::format("one of the first {} bytes has changed", sizeof head));
  }
  if (std::memcmp(head.magic, Head().magic, sizeof head.magic) != 0) {
    throw ReportError("this is not a report of a rank");
  }
  if (head.version != report_version) {
    refuse_version(head.version);
  }
  if (head.content_bytes > file.size() || file.size() < file_bytes(head.content_bytes)) {
    throw DamagedReport(file.size(), "the file is cut short here");
  }
  if (file.size() > file_bytes(head.content_bytes)) {
    throw DamagedReport(file_bytes(head.content_bytes),
                        "the report ends here, but the file does not");
  }
  std::vector<uint8_t> content;
  content.reserve(head.content_bytes);
  size_t at = sizeof head;
  for (uint64_t block = 0; at < file.size(); ++block) {
    uint32_t told = 0;
    const size_t begin = at + sizeof told;
    const auto bytes = file.subspan(begin, std::min(block_bytes, file.size() - begin));
    std::memcpy(&told, file.data() + at, sizeof told);
    if (told != checksum_of(block, bytes)) {
      throw DamagedReport(
          at, fmt::format("one of the {} bytes from here has changed", sizeof told + bytes.size()));
    }
    content.insert(content.end(), bytes.begin(), bytes.end());
    at = begin + bytes.size();
  }
  return content;
}

}  // namespace lockstep
