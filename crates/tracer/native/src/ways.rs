//! The ways out of a block: what its last instruction does.
//!
//! ```text
//! jmp to          jmp stub            stub: leave with the link's number. Once the code of `to` is
//!                                     there the jump leads to it instead
//! call [rax]      rcx = target; push the return address;
//!                 look target up: set of two, the first here, the second in `second_look`
//!                 jmp code            or leave, if the table does not know it
//! ```

use iced_x86::{Code as Opcode, Instruction, MemoryOperand, OpKind, Register};

use crate::context::{Mode, at, leave};
use crate::emit::{Emitter, R10, R11, RCX, RSP};
use crate::plan::{End, Plan, gpr};
use crate::segment::is_in_gs;
use crate::translate::{Exit, Writer};

impl Writer {
    fn link(&mut self, opcode: &[u8], to: u64) {
        let place = self.emitter.branch(opcode, 0);
        self.exits.push(Exit { place, stub: 0, to });
    }

    /// What the last instruction does.
    pub(crate) fn end(&mut self, plan: &Plan, id: u32) {
        let Some(last) = plan.instructions.last() else { return };
        let after = plan.after();
        match plan.end {
            End::Falls => self.link(&[0xe9], after),
            End::Jumps(to) => self.link(&[0xe9], to),
            End::Calls(to) => {
                self.emitter.push(after);
                self.link(&[0xe9], to);
            }
            End::Branches(to) if last.is_jcc_short_or_near() => {
                let condition = last.condition_code() as u8 - 1;
                self.link(&[0x0f, 0x80 | condition], to);
                self.link(&[0xe9], after);
            }
            End::Branches(to) => {
                // `loop` and its kin have short distances only.
                let code = &plan.codes[plan.codes.len() - 1];
                let mut bytes = code.bytes[..usize::from(code.len)].to_vec();
                bytes.pop();
                self.emitter.put(&bytes);
                self.emitter.put(&[0]);
                let jump = self.emitter.bytes.len();
                self.link(&[0xe9], after);
                self.emitter.land(jump);
                self.link(&[0xe9], to);
            }
            End::Special(_) => self.emitter.leave(leave::SPECIAL, id, self.setting.leave),
            End::JumpsThrough | End::CallsThrough | End::Returns => {
                self.indirect(plan.end, last, after);
            }
        }
    }

    fn indirect(&mut self, end: End, last: &Instruction, after: u64) {
        self.emitter.store(at::spill(RCX), RCX);
        match end {
            End::Returns => {
                // pop rcx; lea rsp, [rsp + what it drops]
                self.emitter.put(&[0x59]);
                if last.op_count() == 1 {
                    self.emitter.add(RSP, RSP, i32::from(last.immediate16()));
                }
            }
            _ => self.load_target(last),
        }
        if end == End::CallsThrough {
            self.emitter.push(after);
        }
        self.look_up();
    }

    /// Where a branch through a register or memory goes, into RCX.
    fn load_target(&mut self, last: &Instruction) {
        if last.op0_kind() == OpKind::Register {
            if let Some(from) = gpr(last.op0_register()) {
                self.emitter.copy(RCX, from);
            }
            return;
        }
        if is_in_gs(last) {
            return self.load_target_from_gs(last);
        }
        if last.is_ip_rel_memory_operand() {
            self.emitter.set(RCX, last.ip_rel_memory_address());
            // mov rcx, [rcx]
            return self.emitter.put(&[0x48, 0x8b, 0x09]);
        }
        let displacement = last.memory_displacement64() as i64;
        let memory = MemoryOperand::new(
            last.memory_base(),
            last.memory_index(),
            last.memory_index_scale(),
            displacement,
            last.memory_displ_size(),
            false,
            last.segment_prefix(),
        );
        self.encode(Instruction::with2(Opcode::Mov_r64_rm64, Register::RCX, memory));
    }

    /// Goes to the program's address in RCX.
    fn look_up(&mut self) {
        let table = at::table(self.mode);
        let second = self.setting.second[self.mode as usize];
        let emitter = &mut self.emitter;
        // Of all registers these are needed least behind a call or a return.
        emitter.store(at::spill(R10), R10);
        emitter.store(at::spill(R11), R11);
        emitter.store(at::PC, RCX);
        // movzx r10d, cx; lea r10, [r10 * 4]: a set has four words.
        emitter.put(&[0x44, 0x0f, 0xb7, 0xd1, 0x4e, 0x8d, 0x14, 0x95, 0, 0, 0, 0]);
        emitter.load_table(R11, table);
        emitter.put(&ADD_R11_TO_RCX);
        let hit = emitter.jump_if_rcx_is_0();
        emitter.jump(second);
        emitter.land(hit);
        emitter.load_table(R10, table + 8);
        go(emitter);
    }

    /// Where exits lead that are not linked.
    pub(crate) fn stubs(&mut self) {
        let first = self.setting.first_exit;
        for (index, exit) in self.exits.iter_mut().enumerate() {
            exit.stub = self.emitter.here();
            self.emitter.leave(leave::LINK, first + index as u32, self.setting.leave);
            let from = (exit.place - self.emitter.base) as usize;
            let distance = exit.stub.wrapping_sub(exit.place + 4) as i32;
            self.emitter.bytes[from..from + 4].copy_from_slice(&distance.to_le_bytes());
        }
    }
}

/// `lea rcx, [rcx + r11]`
const ADD_R11_TO_RCX: [u8; 4] = [0x4a, 0x8d, 0x0c, 0x19];

/// To the code in R10, with the program's registers.
fn go(emitter: &mut Emitter) {
    emitter.store(at::TARGET, R10);
    emitter.load(R11, at::spill(R11));
    emitter.load(R10, at::spill(R10));
    emitter.load(RCX, at::spill(RCX));
    emitter.jump_through(at::TARGET);
}

/// The code that looks at the second place of a set, and leaves if the address is not there either.
pub(crate) fn second_look(base: u64, mode: Mode, leave: u64) -> Vec<u8> {
    let table = at::table(mode);
    let mut emitter = Emitter::new(base);
    emitter.load(RCX, at::PC);
    emitter.load_table(R11, table + 16);
    emitter.put(&ADD_R11_TO_RCX);
    let hit = emitter.jump_if_rcx_is_0();
    emitter.load(R11, at::spill(R11));
    emitter.load(R10, at::spill(R10));
    emitter.load(RCX, at::spill(RCX));
    emitter.leave(self::leave::INDIRECT, 0, leave);
    emitter.land(hit);
    emitter.load_table(R10, table + 24);
    go(&mut emitter);
    emitter.bytes
}
