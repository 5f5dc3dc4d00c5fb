// A linker for what LLVM emits for kernels: loaded sections one after the other, references between them resolved.
// Everything is relative, so the result runs at any page-aligned address.
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "codegen/cpu/object.h"

namespace selkie::codegen::cpu {
namespace {

namespace elf = llvm::ELF;
using llvm::object::ELFObjectFileBase;
using llvm::object::RelocationRef;
using llvm::object::SectionRef;

// The widest vectors of constants want this.
constexpr uint64_t section_alignment = 64;

template <class T>
T expect(llvm::Expected<T> result) {
  CHECK(static_cast<bool>(result), "LLVM's own object cannot be read: {}", llvm::toString(result.takeError()));
  return std::move(*result);
}

void write32(std::byte* at, uint32_t value) { std::memcpy(at, &value, sizeof value); }
uint32_t read32(const std::byte* at) {
  uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void set_bits(std::byte* at, uint64_t value, unsigned bits, unsigned position) {
  uint32_t mask = ((uint32_t{1} << bits) - 1) << position;
  write32(at, (read32(at) & ~mask) | ((static_cast<uint32_t>(value) << position) & mask));
}

void check_fits(int64_t value, unsigned bits) {
  CHECK(value >= -(int64_t{1} << (bits - 1)) && value < (int64_t{1} << (bits - 1)), "code is too far from its data");
}

void relocate_x86(std::byte* at, uint64_t type, int64_t distance) {
  if (type == elf::R_X86_64_PC64) {
    std::memcpy(at, &distance, sizeof distance);
    return;
  }
  CHECK(type == elf::R_X86_64_PC32 || type == elf::R_X86_64_PLT32, "x86 relocation {}", type);
  check_fits(distance, 32);
  write32(at, static_cast<uint32_t>(distance));
}

// Pages of 4 KiB, as the instructions count them.
void relocate_arm(std::byte* at, uint64_t type, uint64_t target, uint64_t place) {
  int64_t distance = static_cast<int64_t>(target - place);
  auto low = [&](unsigned shift) { set_bits(at, (target & 0xfff) >> shift, 12 - shift, 10); };
  switch (type) {
    case elf::R_AARCH64_PREL64:
      std::memcpy(at, &distance, sizeof distance);
      return;
    case elf::R_AARCH64_PREL32:
      check_fits(distance, 32);
      return write32(at, static_cast<uint32_t>(distance));
    case elf::R_AARCH64_CALL26:
    case elf::R_AARCH64_JUMP26:
      check_fits(distance, 28);
      return set_bits(at, static_cast<uint64_t>(distance) >> 2, 26, 0);
    case elf::R_AARCH64_ADR_PREL_PG_HI21: {
      uint64_t pages = (target >> 12) - (place >> 12);
      check_fits(static_cast<int64_t>(pages), 21);
      set_bits(at, pages, 2, 29);
      return set_bits(at, pages >> 2, 19, 5);
    }
    case elf::R_AARCH64_ADD_ABS_LO12_NC:
    case elf::R_AARCH64_LDST8_ABS_LO12_NC:
      return low(0);
    case elf::R_AARCH64_LDST16_ABS_LO12_NC:
      return low(1);
    case elf::R_AARCH64_LDST32_ABS_LO12_NC:
      return low(2);
    case elf::R_AARCH64_LDST64_ABS_LO12_NC:
      return low(3);
    case elf::R_AARCH64_LDST128_ABS_LO12_NC:
      return low(4);
    default:
      CHECK(false, "AArch64 relocation {}", type);
  }
}

class Linker {
 public:
  Linker(const ELFObjectFileBase& object, program::Image& image) : object_(object), image_(image) {}

  std::vector<PlacedSymbol> run() {
    for (const SectionRef& section : object_.sections()) place(section);
    for (const SectionRef& section : object_.sections()) {
      auto relocated = expect(section.getRelocatedSection());
      if (relocated == object_.section_end() || !offsets_.contains(relocated->getIndex())) continue;
      for (const RelocationRef& relocation : section.relocations()) apply(*relocated, relocation);
    }
    std::vector<PlacedSymbol> functions;
    for (const llvm::object::ELFSymbolRef symbol : object_.symbols())
      if (symbol.getELFType() == elf::STT_FUNC && symbol.getBinding() == elf::STB_GLOBAL)
        functions.push_back({.name = expect(symbol.getName()).str(), .offset = address(symbol)});
    return functions;
  }

 private:
  void place(const llvm::object::ELFSectionRef section) {
    if ((section.getFlags() & elf::SHF_ALLOC) == 0 || section.getSize() == 0) return;
    llvm::StringRef contents = expect(section.getContents());
    CHECK((section.getFlags() & elf::SHF_WRITE) == 0, "kernels have writable data in {}",
          expect(section.getName()).str());
    CHECK(section.getAlignment().value() <= section_alignment, "alignment {}", section.getAlignment().value());
    // Not at the very start: sanitizers read what is before a function that is called by address.
    size_t end = std::max<size_t>(image_.code.size(), 1);
    size_t offset = (end + section_alignment - 1) / section_alignment * section_alignment;
    image_.code.resize(offset + contents.size());
    std::memcpy(&image_.code[offset], contents.data(), contents.size());
    offsets_.emplace(section.getIndex(), offset);
  }

  uint64_t address(const llvm::object::SymbolRef& symbol) {
    auto section = expect(symbol.getSection());
    CHECK(section != object_.section_end() && offsets_.contains(section->getIndex()),
          "generated code needs the symbol {}, which nothing defines", expect(symbol.getName()).str());
    return offsets_.at(section->getIndex()) + expect(symbol.getValue());
  }

  void apply(const SectionRef& section, const llvm::object::ELFRelocationRef relocation) {
    uint64_t place = offsets_.at(section.getIndex()) + relocation.getOffset();
    uint64_t target = address(*relocation.getSymbol()) + static_cast<uint64_t>(expect(relocation.getAddend()));
    std::byte* at = &image_.code[place];
    if (object_.getEMachine() == elf::EM_X86_64)
      relocate_x86(at, relocation.getType(), static_cast<int64_t>(target - place));
    else
      relocate_arm(at, relocation.getType(), target, place);
  }

  const ELFObjectFileBase& object_;
  program::Image& image_;
  std::map<uint64_t, uint64_t> offsets_;  // into the image, by index of section
};

}  // namespace

std::vector<PlacedSymbol> append_object(const std::vector<char>& object, program::Image& image) {
  llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()), "kernels");
  auto file = expect(llvm::object::ObjectFile::createELFObjectFile(buffer));
  return Linker(llvm::cast<ELFObjectFileBase>(*file), image).run();
}

}  // namespace selkie::codegen::cpu
