#include "io/events/crc32c.hpp"

#include <boost/crc.hpp>

namespace lockstep {

uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> castagnoli;
  castagnoli.process_bytes(bytes.data(), bytes.size());
  return castagnoli.checksum();
}

}  // namespace lockstep
