import { Body, Controller, HttpCode, Param } from '@nestjs/common';
import { EnrolRequest, type EnrolAnswer, type Enrolment } from '@nd7/vault-api';
import { Api } from '../http/api.js';
import { Valid } from '../http/body.js';
import { EnrolService } from './enrol.service.js';

@Controller()
export class EnrolController {
  constructor(private readonly service: EnrolService) {}

  @Api('enrolment')
  describe(@Param('secret_hash') secretHash: string): Promise<Enrolment> {
    return this.service.describe(secretHash);
  }

  @Api('enrol')
  @HttpCode(201)
  enrol(@Body(new Valid(EnrolRequest)) body: EnrolRequest): Promise<EnrolAnswer> {
    return this.service.enrol(body);
  }
}
